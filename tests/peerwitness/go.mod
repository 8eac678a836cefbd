// Another implementation of C2SP witnesses, pinned: the tests of our record speak with it. It is built once and kept in the
// user's cache (tests/peerwitness/__init__.py).
module fastness.dev/tests/peerwitness

go 1.26.0

// A feeder for another kind of log asks for it; nothing here does.
exclude github.com/transparency-dev/serverless-log v0.0.0-20250425165558-64e1d2007a10

require (
	github.com/transparency-dev/formats v0.1.1-0.20260505144013-1e3a4ad78464
	github.com/transparency-dev/merkle v0.0.3-0.20240919113952-3c979d16ee14
	github.com/transparency-dev/witness v0.0.0-20260617164027-9332986a94a4
	golang.org/x/mod v0.36.0
)

require (
	filippo.io/mldsa v0.0.0-20260215214346-43d0283efc3e // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.44.0 // indirect
	go.opentelemetry.io/otel/metric v1.44.0 // indirect
	go.opentelemetry.io/otel/trace v1.44.0 // indirect
	golang.org/x/crypto v0.51.0 // indirect
	golang.org/x/net v0.54.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/text v0.37.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
)
