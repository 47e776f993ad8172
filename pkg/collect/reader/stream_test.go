package reader

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var noon = time.Date(2026, 7, 14, 12, 0, 0, 0, time.UTC)

func readString(text string) (Reading, error) {
	return Read(iotest.OneByteReader(strings.NewReader(text)), func() time.Time { return noon })
}

const whole = "noderes 1\n" +
	"S 0\nT 1784030400.5 100.25\nF 3 /proc/stat\nab\n\nT 1784030401 100.75\n" +
	"S once\nF 0 /proc/cmdline\n\nF 8 kernel.log\nZ\nF 1 x\n\nE 42 /proc/version\ncat: /host/proc/version: Permission denied\n" +
	"E 51 /proc/7/status\ncat: /host/proc/7/status: No such file or directory\n" +
	"S 1\nT 1784030406 105.25\nF 1 /proc/stat\nc\nT 1784030407 -\nF 1 /sys/fs/cgroup/cpu.weight\n1\n" +
	"Z\n"

func TestRead(t *testing.T) {
	const text = whole
	r, err := readString(text)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%q %q %q %v", r.Once, r.Samples[0].Files, r.Samples[1].Files, r.Failed)
	want := `[{"proc/cmdline" ""} {"kernel.log" "Z\nF 1 x\n"}] [{"proc/stat" "ab\n"}] [{"proc/stat" "c"} {"sys/fs/cgroup/cpu.weight" "1"}]` +
		` [{-1 proc/version cat: /host/proc/version: Permission denied}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	begin, end := r.Samples[0].Begin, r.Samples[1].End
	if begin != (Clock{time.Date(2026, 7, 14, 12, 0, 0, 5e8, time.UTC), 100250 * time.Millisecond, true, noon}) || end.HasUptime {
		t.Errorf("clocks %v, %v", begin, end)
	}
	if !r.Samples[0].Whole || !r.Samples[1].Whole {
		t.Error("a sample is not whole")
	}
	// Wherever it is cut, the files before it are there, and it is said.
	for i := range text {
		r, err := readString(text[:i])
		if !errors.Is(err, errEnd) {
			t.Fatalf("cut at %d: %v", i, err)
		}
		if n := len(r.Samples); n > 0 && r.Samples[n-1].Whole != (n == 1 && strings.Contains(text[:i], "S once\n")) {
			t.Fatalf("cut at %d: the sample is taken for whole: %v", i, r.Samples[n-1].Whole)
		}
		files := len(r.Once)
		for _, s := range r.Samples {
			files += len(s.Files)
		}
		if complete := strings.Count(text[:i], "\nF "); files != complete && files != complete-1 {
			// A frame in the kernel log is none.
			if i < strings.Index(text, "\nF 1 x") {
				t.Errorf("cut at %d: %d files of %d", i, files, complete)
			}
		}
	}
	broken := errors.New("connection lost")
	if _, err := Read(io.MultiReader(strings.NewReader(text[:50]), iotest.ErrReader(broken)), time.Now); !errors.Is(err, errEnd) {
		t.Errorf("%v", err)
	}
}

func TestReadHostile(t *testing.T) {
	const begin = "noderes 1\nS 0\nT 1 1\n"
	for _, c := range []struct{ text, want string }{
		{"hello\n", "begins with"},
		{"noderes 2\n", "begins with"},
		{"noderes 1\nZ\n", "no sample"},
		{"noderes 1\nX\n", "no frame"},
		{"noderes 1\nF 1 /proc/stat\na\nZ\n", "before the first section"},
		{"noderes 1\nS once\n", "out of turn"},
		{"noderes 1\nS 1\n", "out of turn"},
		{begin + "T 1 1\nS 0\n", "out of turn"},
		{begin + "S 1\n", "without an end"},
		{begin + "T 1 1\nS 1\nT 1 1\nT 1 1\nS 2\n", "out of turn"},
		{begin + "T 1 1\nS once\nS once\n", "out of turn"},
		{begin + "T 1 1\nS once\nT 1 1\n", "outside of a sample"},
		{begin + "T 2 2\nT 3 3\n", "more than two clocks"},
		{begin + "Z\n", "without an end"},
		{"noderes 1\nS 0\nT x 1\n", "no time"},
		{"noderes 1\nS 0\nT 9999999999 1\n", "no time"},
		{"noderes 1\nS 0\nT -1 1\n", "no time"},
		{begin + "F -1 /proc/stat\n", "no length"},
		{begin + "F 99999999999 /proc/stat\n", "no length"},
		{begin + "F 999999999 /proc/stat\n", "999999999 bytes"},
		{begin + "E 9999 /proc/stat\n", "9999 bytes"},
		{begin + "F 1 /proc/stat\nab\n", "longer than was announced"},
		{begin + "F 1 /proc/stat\na\nF 1 /proc/stat\na\n", "twice"},
		{begin + "F 1 /proc/1/cmdline\na\n", "not asked for"},
		{begin + "F 1 /proc/1/environ\na\n", "not asked for"},
		{begin + "F 1 /etc/shadow\na\n", "not asked for"},
		{begin + "F 1 /var/lib/kubelet/pki/x\na\n", "not asked for"},
		{begin + "F 1 /sys/fs/cgroup/../../../etc/shadow\na\n", "not asked for"},
		{begin + "F 1 /sys/fs/cgroup/\na\n", "not asked for"},
		{begin + "F 1 sys/fs/cgroup/cpu.stat\na\n", "not asked for"},
		{begin + "F 1 /sys/fs/cgroup/a\x1b[31m/cpu.stat\na\n", "not asked for"},
		{begin + "F 1 /sys/fs/cgroup/" + strings.Repeat("a", 5000) + "\na\n", "a line of more than"},
		{begin + "F 900000 /proc/stat\na\n", "ended early"},
	} {
		r, err := readString(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%.80q: %v", c.text, err)
		}
		if len(r.Samples) > 2 {
			t.Errorf("%.80q: %d samples", c.text, len(r.Samples))
		}
	}
}

// A stream without end ends.
func TestReadBounds(t *testing.T) {
	const begin = "noderes 1\nS 0\nT 1 1\n"
	n := 0
	files := readerFunc(func(p []byte) (int, error) {
		n++
		return copy(p, fmt.Sprintf("F 0 /sys/fs/cgroup/%d/cpu.stat\n\n", n)), nil
	})
	r, err := Read(io.MultiReader(strings.NewReader(begin), files), time.Now)
	if !errors.Is(err, errLimit) || len(r.Samples[0].Files) != maxFiles {
		t.Errorf("%v", err)
	}
	line := readerFunc(func(p []byte) (int, error) { return copy(p, strings.Repeat("a", len(p))), nil })
	if _, err := Read(line, time.Now); err == nil {
		t.Error("a line without end was read")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func FuzzRead(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("noderes 1\nS 0\nT 1 1\nF 1 /proc/stat\na\nT 1 1\nZ\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(strings.NewReader(string(data)), time.Now)
		total := 0
		for _, s := range r.Samples {
			for _, f := range s.Files {
				total += len(f.Data)
			}
		}
		if total > len(data) {
			t.Errorf("%d bytes of %d", total, len(data))
		}
		if err == nil && len(r.Samples) == 0 {
			t.Error("nothing, without an error")
		}
	})
}
