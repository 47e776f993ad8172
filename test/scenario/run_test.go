package scenario

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunIsRepeatable(t *testing.T) {
	for _, profile := range Profiles() {
		for i := range 10 {
			a, b := Generate("1.37", 3, i, profile), Generate("1.37", 3, i, profile)
			if d := cmp.Diff(a, b); d != "" {
				t.Fatalf("%s %d is generated in two ways:\n%s", profile, i, d)
			}
			if d := cmp.Diff(Run(&a), Run(&b)); d != "" {
				t.Fatalf("%s %d has two results:\n%s", profile, i, d)
			}
		}
	}
}

func TestAlternatives(t *testing.T) {
	s := Generate("1.37", 1, 0, "cpu")
	s.Kubelet.CPUManagerPolicy, s.Kubelet.TopologyManagerPolicy = "static", "none"
	s.Kubelet.CPUManagerPolicyOptions = map[string]string{"a": "", "b": "", "full-pcpus-only": "ja"}
	out := Run(&s)
	var texts []string
	for _, o := range append([]Output{out}, out.Alternatives...) {
		texts = append(texts, o.Setup.Error)
	}
	want := []string{
		`new static policy error: unknown CPU Manager Policy option: "a"`,
		`new static policy error: unknown CPU Manager Policy option: "b"`,
		`new static policy error: bad value for option "full-pcpus-only": strconv.ParseBool: parsing "ja": invalid syntax`,
	}
	if d := cmp.Diff(want, texts); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestBadInput(t *testing.T) {
	good := `{"id":"x","topology":{"cpus":[{"cpu":0},{"cpu":1}],"numa":[{"id":0,"memory":1}]},` +
		`"kubelet":{"cpuManagerPolicy":"static","memoryManagerPolicy":"None","topologyManagerPolicy":"none","nodeReservation":{"cpu":"1"}},"steps":[STEPS]}`
	for _, tc := range []struct{ old, new, want string }{
		{`"cpu":1}`, `"cpu":99999}`, "cpu id is not between 0 and 2047"},
		{`"cpu":1}`, `"cpu":0}`, "cpus provided are not unique"},
		{`[{"cpu":0},{"cpu":1}]`, `[]`, "could not detect number of cpus"},
		{`"cpu":"1"}`, `"cpu":"x"}`, `quantity "x" of "cpu"`},
		{`"cpu":"1"}`, `"cpu":"3"}`, "unable to reserve the required amount of CPUs (size of  did not equal 3)"},
		{`"id":"x"`, `"version":"1.38"`, "is not one of 1.34 to 1.37"},
		{`STEPS`, `{"op":"jump"}`, `unknown op "jump"`},
		{`STEPS`, `{"op":"add"}`, `add: no pod`},
		{`"memory":1}`, `"memory":1},{"id":0}`, "listed twice"},
	} {
		text := strings.ReplaceAll(strings.Replace(good, tc.old, tc.new, 1), "STEPS", "")
		var s Scenario
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if out := Run(&s); !strings.Contains(out.Error+out.Setup.Error, tc.want) {
			t.Errorf("%s: %q, %+v; want %s", tc.new, out.Error, out.Setup, tc.want)
		}
	}
}

func FuzzRun(f *testing.F) {
	for _, profile := range Profiles() {
		s := Generate("1.36", 5, 0, profile)
		for i := 1; len(s.Topology.CPUs) > 8 && i < 100; i++ {
			s = Generate("1.36", 5, i, profile)
		}
		s.Steps = s.Steps[:4] // small, so that the fuzzer gets far
		line, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"topology":{"cpus":[{"cpu":0,"numa":-1},{"cpu":1,"numa":99}],"numa":[{"id":-1},{"id":99,"memory":18446744073709551615}]},` +
		`"kubelet":{"cpuManagerPolicy":"static","memoryManagerPolicy":"Static","topologyManagerPolicy":"restricted","topologyManagerScope":"pod",` +
		`"reservedMemory":[{"numaNode":-1,"limits":{"memory":"1"}}],"nodeReservation":{"cpu":"1","memory":"1"}},` +
		`"steps":[{"op":"add","pod":{"uid":"a","containers":[{"name":"c","limits":{"cpu":"1","memory":"9E"}}]}}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var s Scenario
		if json.Unmarshal(line, &s) != nil || len(s.Topology.NUMA) > 10 {
			return
		}
		Run(&s)
	})
}

// A file with a wrong checksum, and one with none, in versions that can and cannot do without.
func TestStateFiles(t *testing.T) {
	for _, tc := range []struct{ version, cpu, memory, want string }{
		{"1.37", `{"policyName":"static","defaultCpuSet":"0-1","checksum":0}`, "", ""},
		{"1.34", `{"policyName":"static","defaultCpuSet":"0-1","checksum":0}`, "", ""},
		{"1.37", `{"policyName":"static","defaultCpuSet":"0-1","checksum":4711}`, "", `checkpoint is corrupted, please drain this node and delete the CPU manager checkpoint file "/var/lib/kubelet/cpu_manager_state"`},
		{"1.35", `{"policyName":"static","defaultCpuSet":"0","entries":{"a":{"c":"1"}},"checksum":4711}`, "", `: checkpoint is corrupted, `},
		{"1.36", `{"policyName":"static","defaultCpuSet":"0","entries":{"a":{"c":"1"}},"checksum":4711}`, "", `: json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string, `},
		{"1.37", "", `{"policyName":"None","machineState":{},"checksum":0}`, ""},
		{"1.35", "", `{"policyName":"None","machineState":{},"checksum":0}`, `checkpoint is corrupted, please drain this node and delete the memory manager checkpoint file "/var/lib/kubelet/memory_manager_state"`},
	} {
		s := Scenario{
			Version:  tc.version,
			Topology: Topology{CPUs: []CPU{{CPU: 0}, {CPU: 1, Core: 1}}, NUMA: []NUMA{{Memory: 1 << 30}}},
			Kubelet: Kubelet{CPUManagerPolicy: "static", MemoryManagerPolicy: "None", TopologyManagerPolicy: "none",
				NodeReservation: map[string]string{"cpu": "1"}},
			State: &SeedState{},
		}
		if tc.cpu != "" {
			s.State.CPU = json.RawMessage(tc.cpu)
		}
		if tc.memory != "" {
			s.State.Memory = json.RawMessage(tc.memory)
		}
		if out := Run(&s); out.Error != "" || out.Setup.OK != (tc.want == "") || !strings.Contains(out.Setup.Error, tc.want) {
			t.Errorf("%s, %s%s: %+v, %s", tc.version, tc.cpu, tc.memory, out.Setup, out.Error)
		}
	}
}
