package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// patience bounds the wait for events after the last request was answered.
const patience = 30 * time.Second

var namePrefix = []byte(`"name":"bench-`)

// watcher reads one watch.
type watcher struct {
	conn     *connection
	body     *bufio.Reader
	delivery []time.Duration
}

func openWatch(job Job, trust *tls.Config) (*watcher, error) {
	c, err := dial(job, trust)
	if err != nil {
		return nil, err
	}
	c.write(job, "GET", job.WatchPath, "", 0)
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("watch: %s", response.Status)
	}
	return &watcher{conn: c, body: bufio.NewReaderSize(response.Body, 64*1024)}, nil
}

// watch starts reading; the function that it returns waits for every event and adds them to the result.
func (f *field) watch() func(*Result) {
	var group sync.WaitGroup
	for _, w := range f.watchers {
		group.Add(1)
		go func() {
			defer group.Done()
			w.read(f)
		}()
	}
	return func(result *Result) {
		if len(f.watchers) == 0 {
			return
		}
		for _, w := range f.watchers {
			_ = w.conn.conn.SetReadDeadline(time.Now().Add(patience))
		}
		group.Wait()
		var all []time.Duration
		for _, w := range f.watchers {
			all = append(all, w.delivery...)
		}
		result.Events = len(all)
		result.Delivery = quantiles(all)
		if missing := len(f.watchers)*f.job.Count - len(all); missing > 0 {
			result.Failed += missing
			result.Failure = fmt.Sprintf("%d events did not arrive", missing)
		}
	}
}

// read takes events until it has seen one for every request.
func (w *watcher) read(f *field) {
	w.delivery = make([]time.Duration, 0, f.job.Count)
	for len(w.delivery) < f.job.Count {
		line, err := w.body.ReadSlice('\n')
		if err != nil {
			return
		}
		number, ok := numberIn(line)
		if !ok || number < f.job.First || number >= f.job.First+f.job.Count {
			continue
		}
		sent := time.Unix(0, f.sent[number-f.job.First].Load())
		w.delivery = append(w.delivery, time.Since(sent))
	}
}

// numberIn finds the number of the request that an event comes from in the name of its object.
func numberIn(line []byte) (int, bool) {
	at := bytes.Index(line, namePrefix)
	if at < 0 || at+len(namePrefix)+6 > len(line) {
		return 0, false
	}
	number, err := strconv.Atoi(string(line[at+len(namePrefix) : at+len(namePrefix)+6]))
	return number, err == nil
}
