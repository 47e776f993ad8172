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
