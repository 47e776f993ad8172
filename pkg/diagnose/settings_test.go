package diagnose

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseSettings(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  string // an error if it begins with !
	}{
		{[]string{"cpuManagerPolicy=static,reservedSystemCPUs=0,4-5,cpuManagerPolicyOptions.full-pcpus-only=true"}, "[cpuManagerPolicy=static reservedSystemCPUs=0,4-5 cpuManagerPolicyOptions.full-pcpus-only=true]"},
		{[]string{"evictionHard.memory.available=500Mi"}, "[evictionHard.memory.available=500Mi]"},
		{[]string{"reservedMemory=0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=1Gi"}, "[reservedMemory=0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=1Gi]"},
		{[]string{"kubeletVersion=1.36"}, "[kubeletVersion=1.36]"},
		{[]string{"kubeletVersion=new"}, "!not a kubelet version"},
		{[]string{"maxPods=3"}, "!no such setting"},
		{[]string{"cpuManagerPolicy"}, "!is not FIELD=VALUE"},
		{[]string{"cpuManagerPolicy.x=1"}, "!has no keys"},
		{[]string{"featureGates=true"}, "!is a map"},
		{[]string{"featureGates.X=perhaps"}, "!true or false"},
		{[]string{"reservedSystemCPUs=a"}, "!"},
		{[]string{"reservedMemory=memory=1Gi"}, "!is not NODE:TYPE=AMOUNT"},
	} {
		got, err := ParseSettings(c.texts)
		text := fmt.Sprint(got.Texts())
		if want, isErr := strings.CutPrefix(c.want, "!"); isErr {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", c.texts, err, want)
			}
		} else if err != nil || text != c.want {
			t.Errorf("%q: %s, %v", c.texts, text, err)
		}
	}
}

// What is supposed is named as it was asked for, also where it has no effect or
// is not known here.
func TestSupposedIsNamed(t *testing.T) {
	s := recorded("smt2-k612/bundle", "shop", "frac")(t).open()
	pod := newPod(cpuAndMemory("100m", "64Mi"))
	r := ask(t, s, pod, "smt2", "kubeletVersion=1.20")
	if got := r.Versions.Replay; got != "kubelet 1.34 rules (the nearest to 1.20)" {
		t.Error(got)
	}
	gap := func(set string) bool {
		for _, g := range ask(t, s, pod, "smt2", set).Gaps {
			if strings.HasPrefix(g.Wanted, "featureGates.") {
				return g.Wanted == "featureGates.Nope"
			}
		}
		return false
	}
	if !gap("featureGates.Nope=true") {
		t.Error("no gap for a gate that is not known")
	}
	if gap("featureGates.MemoryQoS=true") || gap("featureGates.AllAlpha=true") {
		t.Error("a gap for a gate that is known")
	}
	replaced := func(set ...string) bool {
		r := ask(t, s, pod, "smt2", set...)
		for _, f := range r.Findings {
			for _, e := range f.Because {
				if strings.Contains(e.Means, "without effect, for the number of reservedSystemCPUs") {
					return true
				}
			}
		}
		return false
	}
	if !replaced("systemReserved.cpu=1e30", "reservedSystemCPUs=0-1") {
		t.Error("not told that reservedSystemCPUs replaces systemReserved.cpu")
	}
	if replaced("systemReserved.memory=1Gi", "reservedSystemCPUs=0-1") || replaced("systemReserved.cpu=1", "reservedSystemCPUs=") {
		t.Error("told of a reservation that stands")
	}
}
