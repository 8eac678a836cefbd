// Command loadgen sends one kind of request over many TLS connections, kept or new each time, and says how long each took.
//
// It shares two cores with the servers that it measures, so it is built to be cheap: every connection is one goroutine
// with one TLS socket, requests are bytes with a number put in, and answers are read but never decoded.
//
// The conversation with the benchmark, over standard input and output:
//
//	<- one line of JSON: the job
//	-> "ready": connections are open and warm, watches are established
//	<- any line: go
//	-> one line of JSON: the result
//
// What the servers spend between "go" and the result is what the benchmark counts; handshakes are in it only when every request
// has a connection of its own.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Job is what to do. In Path and Body the text {n} becomes the number of the request, six digits wide.
type Job struct {
	Address     string              `json:"address"`
	CA          string              `json:"ca"`
	Token       string              `json:"token"`
	Method      string              `json:"method"`
	Path        string              `json:"path"`
	Body        string              `json:"body"`
	Headers     map[string]string   `json:"headers"` // of requests with a body
	Extra       map[string]string   `json:"extra"`   // of every request
	Each        []map[string]string `json:"each"`    // of one request each, in turns
	Accept      string              `json:"accept"`
	First       int                 `json:"first"`
	Count       int                 `json:"count"`
	Connections int                 `json:"connections"`
	Expect      int                 `json:"expect"`
	Gap         float64             `json:"gap"`        // seconds between two requests of one connection
	WatchPath   string              `json:"watch_path"` // when set: watch it, and time request to event
	Watchers    int                 `json:"watchers"`
	Wrap        int                 `json:"wrap"`  // when set: numbers start again after so many
	Fresh       bool                `json:"fresh"` // a new connection with a full handshake for every request
}

// Result is what happened. Times are in microseconds.
type Result struct {
	Seconds  float64   `json:"seconds"`
	Done     int       `json:"done"`
	Failed   int       `json:"failed"`
	Failure  string    `json:"failure,omitempty"`
	Bytes    int64     `json:"bytes"`
	Latency  []float64 `json:"latency"` // quantiles, see Quantiles
	Events   int       `json:"events"`
	Delivery []float64 `json:"delivery"` // quantiles of request sent to event read
}

// Quantiles are the ranks in Latency and Delivery.
var Quantiles = []float64{0.5, 0.9, 0.99, 1}

func main() {
	if err := run(bufio.NewReader(os.Stdin)); err != nil {
		fmt.Fprintln(os.Stderr, "loadgen:", err)
		os.Exit(1)
	}
}

func run(input *bufio.Reader) error {
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no job on standard input: %w", err)
	}
	job := Job{}
	if err := json.Unmarshal(line, &job); err != nil {
		return fmt.Errorf("the job cannot be read: %w", err)
	}
	if job.Count < 1 || job.Connections < 1 {
		return errors.New("a job needs a count and connections")
	}
	trust, err := trustOf(job)
	if err != nil {
		return err
	}
	field, err := prepare(job, trust)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := input.ReadBytes('\n'); err != nil {
		return fmt.Errorf("nobody said go: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(field.run(time.Now()))
}

func trustOf(job Job) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(job.CA)) {
		return nil, errors.New("the job has no certificate authority")
	}
	host, _, _ := strings.Cut(job.Address, ":")
	// Both servers are spoken to in HTTP/1.1, the one protocol that both have.
	return &tls.Config{RootCAs: pool, ServerName: host, NextProtos: []string{"http/1.1"}}, nil
}
