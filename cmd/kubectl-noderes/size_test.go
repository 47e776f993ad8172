package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// maxBytes bounds the stripped linux/amd64 binary: 32 MiB.
const maxBytes = 32 << 20

// templateWalk is what executing a template of text/template or html/template
// comes down to; Execute itself may be inlined. It calls methods by name, so
// that the linker has to keep every exported method (spf13/cobra#2015), which
// costs some 10 MB.
const templateWalk = "text/template.(*state).walk"

// program makes the whole program a part of the test's binary: else its change
// would leave that as it was, and `go test` would show the cached result.
var program = main

// TestSize builds with the flags of `make build` and looks at what the linker
// kept.
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("links the binary")
	}
	runtime.KeepAlive(program)
	bin := filepath.Join(t.TempDir(), "kubectl-noderes")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -dumpdep", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOAMD64=v1")
	var edges bytes.Buffer
	cmd.Stdout, cmd.Stderr = &edges, &edges
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, tail(edges.Bytes()))
	}
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", info.Size())
	if info.Size() >= maxBytes {
		t.Errorf("the binary has %d bytes, it must stay below %d", info.Size(), maxBytes)
	}

	calls := parseEdges(edges.Bytes())
	if calls["main.main"] == nil {
		t.Fatal("main.main is not in what the linker printed")
	}
	for _, root := range []string{"main.main", linkerRoot} {
		if chain := reach(calls, root, templateWalk); chain != nil {
			t.Errorf("a template's Execute is reachable, so dead code is kept:\n\t%s", strings.Join(chain, "\n\t-> "))
			break
		}
	}
}

func TestReach(t *testing.T) {
	edges := parseEdges([]byte(`_ -> main.main
main.main -> type:main.x <UsedInIface>
type:main.x <UsedInIface> -> main.x.Render
main.main -> os.Stdout
main.x.Render -> text/template.(*state).walk
# a line of another kind
`))
	want := []string{"main.main", "type:main.x", "main.x.Render", templateWalk}
	if got := reach(edges, "main.main", templateWalk); !slices.Equal(got, want) {
		t.Errorf("chain %q, want %q", got, want)
	}
	if got := reach(edges, "os.Stdout", templateWalk); got != nil {
		t.Errorf("chain %q where there is none", got)
	}
}

// TestImports fails on gRPC, which reaches a template's Execute, and on the
// scheme of all Kubernetes APIs, whose types cost 15 MB; genericclioptions
// imports it.
func TestImports(t *testing.T) {
	if testing.Short() {
		t.Skip("lists every package")
	}
	runtime.KeepAlive(program)
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	root := ""
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		root = fields[0] // the package named comes last
		imports[root] = fields[1:]
	}
	for _, heavy := range []string{"google.golang.org/grpc", "k8s.io/client-go/kubernetes/scheme"} {
		if chain := reach(imports, root, heavy); chain != nil {
			t.Errorf("%s is imported:\n\t%s", heavy, strings.Join(chain, "\n\t-> "))
		}
	}
}

// linkerRoot stands for all that is kept without being called, such as the
// initialization of packages.
const linkerRoot = "_"

// parseEdges reads the linker's -dumpdep: lines of "from -> to", either with
// attributes in angle brackets.
func parseEdges(dump []byte) map[string][]string {
	edges := map[string][]string{}
	lines := bufio.NewScanner(bytes.NewReader(dump))
	lines.Buffer(nil, len(dump)+1)
	for lines.Scan() {
		from, to, ok := strings.Cut(lines.Text(), " -> ")
		if ok {
			from, to = symbol(from), symbol(to)
			edges[from] = append(edges[from], to)
		}
	}
	return edges
}

func symbol(s string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(s), " <")
	return name
}

// reach returns a shortest way between two nodes, nil if there is none.
func reach(edges map[string][]string, from, to string) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			var chain []string
			for n := to; n != ""; n = cameFrom[n] {
				chain = append(chain, n)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, next := range edges[queue[0]] {
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func tail(b []byte) []byte { return b[max(0, len(b)-2000):] }
