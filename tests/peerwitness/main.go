// A witness and a log of somebody else: the C2SP code of transparency-dev, with no more around it than it takes to start it.
//
//	peerwitness serve NAME LOGKEY        witness one log until standard input ends; prints its key and its address
//	peerwitness feed N                   a log that grows to N, one checkpoint after the other; prints its key, reads the URL
//	                                     and the key of a witness, submits each and checks the cosignature that comes back
//
// Everything that the protocol is about is theirs: parsing, proofs, signatures, cosignatures, the HTTP handler and the client.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/transparency-dev/formats/log"
	f_note "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	client "github.com/transparency-dev/witness/client/http"
	"github.com/transparency-dev/witness/persistence/inmemory"
	"github.com/transparency-dev/witness/witness"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	var err error
	switch arguments := os.Args[1:]; {
	case len(arguments) == 3 && arguments[0] == "serve":
		err = serve(arguments[1], arguments[2])
	case len(arguments) == 2 && arguments[0] == "feed":
		err = feed(arguments[1])
	default:
		err = errors.New("usage: peerwitness serve NAME LOGKEY | feed N")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(name, logKey string) error {
	secret, plain, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return err
	}
	public, err := f_note.VKeyToCosignatureV1(plain)
	if err != nil {
		return err
	}
	signer, err := f_note.NewSignerForCosignatureV1(secret)
	if err != nil {
		return err
	}
	known, err := note.NewVerifier(logKey)
	if err != nil {
		return err
	}
	ctx := context.Background()
	own, err := witness.New(ctx, witness.Opts{
		Persistence: inmemory.New(),
		Signers:     []note.Signer{signer},
		VerifierForLog: func(_ context.Context, origin string) (note.Verifier, bool, error) {
			return known, origin == known.Name(), nil
		},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("%s\nhttp://%s\n", public, listener.Addr())
	routes := http.NewServeMux()
	routes.HandleFunc("POST /add-checkpoint", witness.NewHTTPHandler(own).AddCheckpoint)
	go func() { _ = http.Serve(listener, routes) }()
	_, _ = bufio.NewReader(os.Stdin).ReadBytes(0)
	return nil
}

func feed(most string) error {
	size, err := strconv.ParseUint(most, 10, 64)
	if err != nil {
		return err
	}
	grown, err := newTree()
	if err != nil {
		return err
	}
	fmt.Println(grown.key)
	var address, witnessKey string
	if _, err := fmt.Scanln(&address, &witnessKey); err != nil {
		return err
	}
	target, err := url.Parse(address)
	if err != nil {
		return err
	}
	cosigner, err := f_note.NewVerifierForCosignatureV1(witnessKey)
	if err != nil {
		return err
	}
	witnessed := client.NewWitness(target, http.DefaultClient)
	for next := uint64(1); next <= size; next++ {
		if err := grown.submit(witnessed, cosigner, next); err != nil {
			return fmt.Errorf("size %d: %w", next, err)
		}
	}
	// A log that went back: the witness must say how far it had come, in the words that their client understands.
	_, seen, err := witnessed.Update(context.Background(), 0, grown.first, nil)
	if !errors.Is(err, witness.ErrCheckpointStale) || seen != size {
		return fmt.Errorf("a rollback was answered with size %d and %w", seen, err)
	}
	fmt.Println("cosigned", size)
	return nil
}

// tree is a log in memory.
type tree struct {
	origin string
	key    string
	signer note.Signer
	own    note.Verifier
	state  *compact.Range
	nodes  map[compact.NodeID][]byte
	first  []byte
}

func newTree() (*tree, error) {
	const origin = "example.com/peer"
	secret, key, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return nil, err
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		return nil, err
	}
	own, err := note.NewVerifier(key)
	if err != nil {
		return nil, err
	}
	factory := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	empty := factory.NewEmptyRange(0)
	return &tree{origin, key, signer, own, empty, map[compact.NodeID][]byte{}, nil}, nil
}

// submit grows the log to a size, has it cosigned, and opens what came back.
func (t *tree) submit(to client.Witness, cosigner note.Verifier, size uint64) error {
	leaf := rfc6962.DefaultHasher.HashLeaf([]byte(strconv.FormatUint(size, 10)))
	keep := func(id compact.NodeID, hash []byte) { t.nodes[id] = hash }
	if err := t.state.Append(leaf, keep); err != nil {
		return err
	}
	root, err := t.state.GetRootHash(nil)
	if err != nil {
		return err
	}
	text := log.Checkpoint{Origin: t.origin, Size: size, Hash: root}.Marshal()
	signed, err := note.Sign(&note.Note{Text: string(text)}, t.signer)
	if err != nil {
		return err
	}
	if size == 1 {
		t.first = signed
	}
	proved, err := t.consistency(size-1, size)
	if err != nil {
		return err
	}
	cosignature, _, err := to.Update(context.Background(), size-1, signed, proved)
	if err != nil {
		return err
	}
	opened, err := note.Open(append(signed, cosignature...), note.VerifierList(t.own, cosigner))
	if err != nil {
		return err
	}
	if len(opened.Sigs) != 2 {
		return fmt.Errorf("%d signatures count", len(opened.Sigs))
	}
	_, err = f_note.CoSigV1Timestamp(opened.Sigs[1])
	return err
}

func (t *tree) consistency(from, to uint64) ([][]byte, error) {
	needed, err := proof.Consistency(from, to)
	if err != nil {
		return nil, err
	}
	hashes := make([][]byte, len(needed.IDs))
	for index, id := range needed.IDs {
		hashes[index] = t.nodes[id]
	}
	return needed.Rehash(hashes, rfc6962.DefaultHasher.HashChildren)
}
