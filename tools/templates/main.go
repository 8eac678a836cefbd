// Runs templates of feature rules with the real engine: Go's text/template and sprig, as Node Feature Discovery puts them together.
//
// One JSON object per line comes in, {"template": ..., "data": {domain: {feature: [{name: value}]}}}; one goes out,
// {"output": ...} or {"error": ..., "parse": whether the template itself was refused}.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

type question struct {
	Template string                                    `json:"template"`
	Data     map[string]map[string][]map[string]string `json:"data"`
}

type answer struct {
	Output string `json:"output"`
	Error  string `json:"error,omitempty"`
	Parse  bool   `json:"parse,omitempty"`
}

func run(asked question) answer {
	functions := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(functions, name)
	}
	parsed, err := template.New("").Option("missingkey=error").Funcs(functions).Parse(asked.Template)
	if err != nil {
		return answer{Error: err.Error(), Parse: true}
	}
	var out strings.Builder
	if err := parsed.Execute(&out, asked.Data); err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Output: out.String()}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	answers := json.NewEncoder(os.Stdout)
	answers.SetEscapeHTML(false)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := answers.Encode(run(asked)); err != nil {
			panic(err)
		}
	}
}
