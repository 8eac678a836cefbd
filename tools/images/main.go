// Asks for one image as the container runtimes of its family do: with the same library, and with the files that it is given.
//
//	ask-image -root DIR [-policy FILE] IMAGE
//
// DIR holds etc/containers/{registries.conf,policy.json,registries.d}. The image's manifest is fetched from wherever the library
// finds it and judged by the policy; what is wrong goes to stderr.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/image"
	_ "go.podman.io/image/v5/openshift" // policies have scopes of its transport, which it reads strictly
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
)

func main() {
	root := flag.String("root", "", "directory with the files of a machine")
	policy := flag.String("policy", "/etc/containers/policy.json", "policy in it")
	flag.Parse()
	if err := ask(context.Background(), *root, *policy, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func ask(ctx context.Context, root, policy, name string) error {
	containers := filepath.Join(root, "etc/containers")
	system := &types.SystemContext{
		SystemRegistriesConfPath:    filepath.Join(containers, "registries.conf"),
		SystemRegistriesConfDirPath: filepath.Join(containers, "registries.conf.d"),
		RegistriesDirPath:           filepath.Join(containers, "registries.d"),
		SignaturePolicyPath:         filepath.Join(root, policy),
		AuthFilePath:                filepath.Join(root, "auth.json"),
	}
	rules, err := signature.DefaultPolicy(system)
	if err != nil {
		return err
	}
	judge, err := signature.NewPolicyContext(rules)
	if err != nil {
		return err
	}
	defer judge.Destroy()
	reference, err := docker.ParseReference("//" + name)
	if err != nil {
		return err
	}
	source, err := reference.NewImageSource(ctx, system)
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = judge.IsRunningImageAllowed(ctx, image.UnparsedInstance(source, nil))
	return err
}
