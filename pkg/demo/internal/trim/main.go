// Command trim cuts a recording, the folder of a bundle, down to the archive
// that is embedded.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

func main() {
	out := flag.String("o", "", "archive to write")
	flag.Parse()
	if err := run(flag.Arg(0), *out); err != nil {
		fmt.Fprintln(os.Stderr, "trim:", err)
		os.Exit(1)
	}
}

func run(recording, out string) error {
	if recording == "" || out == "" {
		return fmt.Errorf("usage: trim -o ARCHIVE RECORDING")
	}
	files, err := trim(os.DirFS(recording))
	if err != nil {
		return err
	}
	s, err := snapshot.FromFS(files)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := s.WriteArchive(&archive); err != nil {
		return err
	}
	fmt.Printf("%s: %d files, %d bytes\n", out, len(files), archive.Len())
	return os.WriteFile(out, archive.Bytes(), 0o644)
}
