package promtext

import (
	"strings"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	const text = "# HELP a b\na 1\nb{x=\"1,2}\",y=\"q\\\"\\\\\\n\"} 2.5e3 1700000000123\nc{} NaN\na{z=\"\"} 3 99999999999999999999\nab 4\nd 5 -7\n"
	samples, err := Read(text, "a", "b", "c", "d")
	if err != nil || len(samples) != 5 {
		t.Fatalf("%+v, %v", samples, err)
	}
	if b := samples[1]; b.Labels["x"] != "1,2}" || b.Labels["y"] != "q\"\\\n" || b.Value != 2500 || b.Text != "2.5e3" || !b.At.Equal(time.UnixMilli(1700000000123)) {
		t.Errorf("%+v", b)
	}
	for i, s := range samples {
		if i != 1 && !s.At.IsZero() {
			t.Errorf("%+v has a time", s)
		}
	}
	for _, bad := range []string{"a x", "a{", "a{x}", `a{x=1} 2`, `a{x="1} 2`, `a{="1"} 2`} {
		if got, err := Read(bad+"\na 7\n"+bad, "a"); err == nil || len(got) != 1 || got[0].Value != 7 || !strings.HasPrefix(err.Error(), "line 1: ") || !strings.HasSuffix(err.Error(), "and 1 more lines") {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}
