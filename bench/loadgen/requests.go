package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// connection is one TLS socket and what was measured on it.
type connection struct {
	conn    *tls.Conn
	trust   *tls.Config // set when every request dials anew
	reader  *bufio.Reader
	out     bytes.Buffer
	latency []time.Duration
	failed  int
	failure string
	bytes   int64
}

// field is everything that is open before the clock starts.
type field struct {
	job         Job
	connections []*connection
	watchers    []*watcher
	sent        []atomic.Int64 // when each request went out, in nanoseconds
	next        atomic.Int64
}

func prepare(job Job, trust *tls.Config) (*field, error) {
	f := &field{job: job, sent: make([]atomic.Int64, job.Count)}
	for range job.Connections {
		if job.Fresh {
			f.connections = append(f.connections, &connection{trust: trust})
			continue
		}
		c, err := dial(job, trust)
		if err != nil {
			return nil, err
		}
		// The first request of a connection pays for the handshake and the look-up of the credential.
		if status, body, err := c.ask(job, "GET", warming(job), "", len(f.connections)); err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("the server is not there: %d %s %v", status, body, err)
		}
		c.bytes = 0
		f.connections = append(f.connections, c)
	}
	for range job.Watchers {
		w, err := openWatch(job, trust)
		if err != nil {
			return nil, err
		}
		f.watchers = append(f.watchers, w)
	}
	return f, nil
}

func dial(job Job, trust *tls.Config) (*connection, error) {
	conn, err := tls.Dial("tcp", job.Address, trust)
	if err != nil {
		return nil, err
	}
	return &connection{conn: conn, reader: bufio.NewReaderSize(conn, 64*1024)}, nil
}

// run does the whole job and gathers what was measured.
func (f *field) run(start time.Time) Result {
	watching := f.watch()
	var group sync.WaitGroup
	for _, c := range f.connections {
		group.Add(1)
		go func() {
			defer group.Done()
			f.drive(c)
		}()
	}
	group.Wait()
	result := Result{Seconds: time.Since(start).Seconds()}
	var all []time.Duration
	for _, c := range f.connections {
		all = append(all, c.latency...)
		result.Failed += c.failed
		result.Bytes += c.bytes
		if c.failure != "" {
			result.Failure = c.failure
		}
	}
	result.Done = len(all)
	result.Latency = quantiles(all)
	watching(&result)
	return result
}

// drive sends requests until the numbers are used up.
func (f *field) drive(c *connection) {
	c.latency = make([]time.Duration, 0, f.job.Count/f.job.Connections+16)
	for {
		index := int(f.next.Add(1)) - 1
		if index >= f.job.Count {
			return
		}
		number := f.job.First + index
		if f.job.Wrap > 0 {
			number = f.job.First + index%f.job.Wrap
		}
		digits := fmt.Sprintf("%06d", number)
		path := strings.ReplaceAll(f.job.Path, "{n}", digits)
		body := strings.ReplaceAll(f.job.Body, "{n}", digits)
		started := time.Now()
		f.sent[index].Store(started.UnixNano())
		status, answer, err := c.ask(f.job, f.job.Method, path, body, index)
		if err != nil || status != f.job.Expect {
			c.failed++
			c.failure = fmt.Sprintf("%d %.300s %v", status, answer, err)
			if err != nil {
				return
			}
			continue
		}
		c.latency = append(c.latency, time.Since(started))
		if f.job.Gap > 0 {
			time.Sleep(time.Duration(f.job.Gap * float64(time.Second)))
		}
	}
}

// ask sends one request and reads the whole answer; turn says whose headers it has.
func (c *connection) ask(job Job, method, path, body string, turn int) (int, []byte, error) {
	if job.Fresh {
		fresh, err := dial(job, c.trust)
		if err != nil {
			return 0, nil, err
		}
		c.conn, c.reader = fresh.conn, fresh.reader
		defer c.conn.Close()
	}
	c.write(job, method, path, body, turn)
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return 0, nil, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		answer, err := io.ReadAll(response.Body)
		return response.StatusCode, answer, err
	}
	size, err := io.Copy(io.Discard, response.Body)
	c.bytes += size
	return response.StatusCode, nil, err
}

// warming is the path of the first request: API servers have one that costs nothing, doors only have what they hand out.
func warming(job Job) string {
	if len(job.Extra)+len(job.Each) > 0 {
		return job.Path
	}
	return "/version"
}

func (c *connection) write(job Job, method, path, body string, turn int) {
	c.out.Reset()
	c.out.WriteString(method + " " + path + " HTTP/1.1\r\nHost: " + job.Address + "\r\nUser-Agent: loadgen\r\nAccept: " + job.Accept + "\r\n")
	if job.Fresh {
		c.out.WriteString("Connection: close\r\n")
	}
	if job.Token != "" {
		c.out.WriteString("Authorization: Bearer " + job.Token + "\r\n")
	}
	for name, value := range job.Extra {
		c.out.WriteString(name + ": " + value + "\r\n")
	}
	if len(job.Each) > 0 {
		for name, value := range job.Each[turn%len(job.Each)] {
			c.out.WriteString(name + ": " + value + "\r\n")
		}
	}
	if body != "" {
		for name, value := range job.Headers {
			c.out.WriteString(name + ": " + value + "\r\n")
		}
		c.out.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	c.out.WriteString("\r\n" + body)
}

// quantiles are the values at Quantiles, in microseconds; nothing for nothing.
func quantiles(values []time.Duration) []float64 {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	found := make([]float64, len(Quantiles))
	for i, q := range Quantiles {
		rank := min(len(values)-1, int(q*float64(len(values))))
		found[i] = float64(values[rank].Nanoseconds()) / 1000
	}
	return found
}
