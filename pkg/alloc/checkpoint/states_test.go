package checkpoint

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// states returns the files of testdata by their names.
func states(t testing.TB) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/states.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range txtar.Parse(data).Files {
		files[f.Name] = f.Data
	}
	return files
}

func set(t testing.TB, list string) cpuset.Set {
	t.Helper()
	s, err := cpuset.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sets(t testing.TB, lists map[string]string) map[string]cpuset.Set {
	all := map[string]cpuset.Set{}
	for name, list := range lists {
		all[name] = set(t, list)
	}
	return all
}

// Every state file that a kubelet wrote verifies, and fails once a character of its content is another.
func TestStatesVerify(t *testing.T) {
	for name, data := range states(t) {
		var sums []Checksum
		var notes, differs []string
		var version int
		var err error
		read := func(data []byte) {
			if strings.HasPrefix(name, "cpu/") {
				var s CPUState
				s, err = ReadCPU(data)
				sums, notes, differs, version = s.Checksums, s.Notes, s.LegacyDiffers, s.Version
			} else {
				var s MemoryState
				s, err = ReadMemory(data)
				sums, notes, differs, version = s.Checksums, s.Notes, s.LegacyDiffers, s.Version
			}
		}
		read(data)
		if err != nil || len(notes) > 0 || len(differs) > 0 {
			t.Errorf("%s: %v, notes %q, differences %q", name, err, notes, differs)
		}
		hasData := strings.Contains(string(data), "dataChecksum")
		wantVersion, wantSums := map[bool]int{true: 2, false: 1}[strings.HasPrefix(name, "cpu/")], 1
		if hasData {
			wantVersion, wantSums = wantVersion+2, 2
		}
		if version != wantVersion || len(sums) != wantSums {
			t.Errorf("%s: version %d, want %d; checksums %v", name, version, wantVersion, sums)
		}
		for _, sum := range sums {
			if !sum.OK || sum.Absent0 || sum.Stored != uint64(sum.Computed) || sum.Stored == 0 {
				t.Errorf("%s: %+v", name, sum)
			}
		}

		spoilt := strings.Replace(string(data), `policyName":"s`, `policyName":"z`, 1)
		spoilt = strings.Replace(spoilt, `policyName":"S`, `policyName":"z`, 1)
		spoilt = strings.Replace(spoilt, `policyName":"n`, `policyName":"z`, 1)
		read([]byte(spoilt))
		if hasData {
			if err != nil || sums[1].OK || !sums[0].OK || len(differs) != 1 || !strings.HasPrefix(differs[0], "policyName: \"z") {
				t.Errorf("%s, repeated field changed: %v, %+v, %q", name, err, sums, differs)
			}
		} else if !errors.Is(err, ErrCorrupt) || sums[0].OK {
			t.Errorf("%s, content changed: %v, %+v", name, err, sums)
		}
	}
}

func TestReadCPUNUMA4(t *testing.T) {
	got, err := ReadCPU(states(t)["cpu/numa4"])
	if err != nil {
		t.Fatal(err)
	}
	want := CPUState{
		Version: 4, PolicyName: "static", Default: set(t, "0,4-5"),
		Entries: map[string]map[string]cpuset.Set{
			"db830edf-00e0-4596-adaf-68f8f2d76729": {"app": set(t, "1")},
			"ecef4506-d4ea-4ae0-bac4-5e6a3ea89dc5": {"app": set(t, "2-3,6-7")},
		},
		Checksums: []Checksum{
			{Field: "dataChecksum", Stored: 69320427, Computed: 69320427, OK: true},
			{Field: "checksum", Stored: 1245424494, Computed: 1245424494, OK: true},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("state (-want +got):\n%s", d)
	}
	if s := got.AllCPUs().String(); s != "0-7" {
		t.Errorf("AllCPUs = %s", s)
	}
	wantList := []CPUAssignment{
		{"db830edf-00e0-4596-adaf-68f8f2d76729", "app", set(t, "1")},
		{"ecef4506-d4ea-4ae0-bac4-5e6a3ea89dc5", "app", set(t, "2-3,6-7")},
	}
	if d := cmp.Diff(wantList, got.Assignments()); d != "" {
		t.Errorf("assignments (-want +got):\n%s", d)
	}
}

func TestReadMemoryNUMA4(t *testing.T) {
	got, err := ReadMemory(states(t)["memory/numa4"])
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != 3 || got.PolicyName != "Static" {
		t.Errorf("version %d, policy %q", got.Version, got.PolicyName)
	}
	if d := cmp.Diff([]int{0, 1, 2, 3}, got.Nodes()); d != "" {
		t.Errorf("nodes: %s", d)
	}
	wantNode := NUMANodeState{1, tables{
		"hugepages-2Mi": {33554432, 0, 33554432, 0, 33554432},
		"memory":        {1055424512, 0, 1021870080, 273526784, 748343296},
	}, []int{1, 3}}
	if d := cmp.Diff(wantNode, got.MachineState[3]); d != "" {
		t.Errorf("node 3 (-want +got):\n%s", d)
	}
	wantList := []MemoryAssignment{
		{"5b41b536-d95e-4b5f-b350-deec01b30a69", "app", []Block{{[]int{0}, "hugepages-2Mi", 16777216}, {[]int{0}, "memory", 67108864}}},
		{"dac91104-890e-44af-bd5c-fa84c36e5162", "a", []Block{{[]int{0}, "memory", 67108864}}},
		{"dac91104-890e-44af-bd5c-fa84c36e5162", "b", []Block{{[]int{0}, "memory", 67108864}}},
		{"db830edf-00e0-4596-adaf-68f8f2d76729", "app", []Block{{[]int{0}, "memory", 268435456}}},
		{"ecef4506-d4ea-4ae0-bac4-5e6a3ea89dc5", "app", []Block{{[]int{1, 3}, "memory", 2306867200}}},
	}
	if d := cmp.Diff(wantList, got.Assignments()); d != "" {
		t.Errorf("assignments (-want +got):\n%s", d)
	}
}

// The sums of the kubelet's own tests of its checkpoints (cpumanager/state and memorymanager/state).
func TestKnownSums(t *testing.T) {
	const table = `{"total":2048,"systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}`
	const machine = `"machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":` + table + `},"cells":[]}}`
	const block = `[{"numaAffinity":[0],"type":"memory","size":512}]`
	for _, tc := range []struct {
		name, text string
		version    int
	}{
		{"cpu 1", `{"policyName":"static","defaultCPUSet":"7-9","entries":{"containerID1":"4-6","containerID2":"1-3"},"checksum":2026311253}`, 1},
		{"cpu 1 without entries", `{"policyName":"none","defaultCPUSet":"1-3","checksum":1694838852}`, 1},
		{"cpu 3 without pods", `{"policyName":"static","defaultCPUSet":"7-9","entries":{"pod":{"container1":"4-6","container2":"1-3"}},"checksum":1942532442}`, 3},
		{"cpu 3", `{"policyName":"static","defaultCPUSet":"1-2","entries":{"pod1":{"container1":"5-6","container2":"3-4"}},"podEntries":{"pod2":{"cpuSet":"7-9"}},"checksum":766259872}`, 3},
		{"cpu 3, new name", `{"policyName":"static","defaultCPUSet":"1-2","entries":{"pod1":{"container1":"5-6","container2":"3-4"}},"podEntries":{"pod2":{"cpuSet":"7-9"}},"checksum":2284712151}`, 3},
		{"cpu 4", `{"policyName":"other","defaultCPUSet":"1-9","checksum":1234,"data":"{\"policyName\":\"none\",\"defaultCPUSet\":\"4-6\"}","dataChecksum":657950972}`, 4},
		{"memory 1", `{"policyName":"static",` + machine + `,"entries":{"pod":{"container1":` + block + `}},"checksum":4215593881}`, 1},
		{"memory 2", `{"policyName":"static",` + machine + `,"entries":{"pod":{"container1":` + block + `}},"podEntries":{"pod":{"memoryBlocks":` + block + `}},"checksum":1278640530}`, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var version int
			var sums []Checksum
			var err error
			if strings.HasPrefix(tc.name, "cpu") {
				s, e := ReadCPU([]byte(tc.text))
				version, sums, err = s.Version, s.Checksums, e
			} else {
				s, e := ReadMemory([]byte(tc.text))
				version, sums, err = s.Version, s.Checksums, e
			}
			if err != nil || version != tc.version || !sums[0].OK {
				t.Errorf("version %d, want %d; %+v, %v", version, tc.version, sums, err)
			}
		})
	}
}

func TestReadCPUForms(t *testing.T) {
	got, err := ReadCPU([]byte(`{"policyName":"static","defaultCpuSet":"7","entries":{"cid":"4-6"}}`))
	want := CPUState{
		Version: 1, PolicyName: "static", Default: set(t, "7"), ContainerIDs: sets(t, map[string]string{"cid": "4-6"}),
		Checksums: []Checksum{{Field: "checksum", Computed: hash("(*state.CPUManagerCheckpoint){PolicyName:(string)static DefaultCPUSet:(string)7 Entries:(map[string]string)map[cid:4-6] Checksum:(checksum.Checksum)0}"), OK: true, Absent0: true}},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("form 1: %v (-want +got):\n%s", err, d)
	}
	if s := got.AllCPUs().String(); s != "4-7" {
		t.Errorf("AllCPUs = %s", s)
	}

	inner := `{"policyName":"static","defaultCpuSet":"0","entries":{"p":{"c":"1-2"}},"podEntries":{"p":{"cpuSet":"1-4"},"q":{}},"baselines":{"p":{"c":{"baseline":"1"}}}}`
	quoted, _ := json.Marshal(inner)
	sum := dataChecksum(inner, 0).Computed
	file := `{"policyName":"static","defaultCpuSet":"0","entries":{"p":{"c":"1-2"}},"checksum":0,"data":` + string(quoted) + `,"dataChecksum":` + jsonNumber(sum) + `}`
	got, err = ReadCPU([]byte(file))
	want = CPUState{
		Version: 4, PolicyName: "static", Default: set(t, "0"),
		Entries:    map[string]map[string]cpuset.Set{"p": sets(t, map[string]string{"c": "1-2"})},
		PodEntries: sets(t, map[string]string{"p": "1-4", "q": ""}),
		Baselines:  map[string]map[string]cpuset.Set{"p": sets(t, map[string]string{"c": "1"})},
		Checksums:  []Checksum{{"dataChecksum", uint64(sum), sum, true, false}, {"checksum", 0, 3016163417, true, true}},
	}
	want.Checksums[1].Computed = got.Checksums[1].Computed // checked elsewhere
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("form 4: %v (-want +got):\n%s", err, d)
	}
	if s := got.AllCPUs().String(); s != "0-4" {
		t.Errorf("AllCPUs = %s", s)
	}
}

func jsonNumber(n any) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func TestReadCPUWrong(t *testing.T) {
	const good = `"policyName":"static","defaultCpuSet":"0","checksum":`
	for _, tc := range []struct {
		name, text, want string
		corrupt          bool
		version          int
	}{
		{"empty", " \n", "checkpoint is empty", false, 0},
		{"zero bytes", "\x00\x00\x00", "not a JSON object", false, 2},
		{"cut", `{"policyName":"static","defaultCpu`, "unexpected EOF", false, 2},
		{"text after", `{"policyName":"static"}{}`, "text after its end", false, 2},
		{"a list", `["static"]`, `not a JSON object: "[\"static\"]"`, false, 2},
		{"checksum", `{` + good + `1234}`, "checkpoint is corrupted: checksum is 1234, the content gives ", true, 2},
		{"checksum beyond 32 bits", `{` + good + `18446744073709551615}`, "checksum is 18446744073709551615, the content", true, 2},
		{"checksum beyond 64 bits", `{` + good + `18446744073709551616}`, `checksum: not a whole number below 2^64: "18446744073709551616"`, false, 2},
		{"checksum negative", `{` + good + `-1}`, `checksum: not a whole number below 2^64: "-1"`, false, 2},
		{"default", `{"policyName":"static","defaultCpuSet":"1.3","checksum":0}`, `defaultCpuSet: cpu list "1.3": not a number`, false, 2},
		{"default no string", `{"defaultCpuSet":7}`, `defaultCpuSet: not a string: "7"`, false, 2},
		{"entry", `{"defaultCpuSet":"0","entries":{"pod":{"a\u001b":"asd","b":"2"}}}`, `entries["pod"]["a\x1b"]: cpu list "asd": not a number`, false, 2},
		{"entry no string", `{"entries":{"pod":{"a":[1]}}}`, `entries["pod"]["a"]: not a string: "[1]"`, false, 2},
		{"pod no object", `{"entries":{"pod":7}}`, `entries["pod"]: not a JSON object`, false, 2},
		{"forms mixed", `{"entries":{"pod":{"a":"1"},"cid":"2"}}`, "some entries are by container id (form 1) and some by pod", false, 1},
		{"pod entry", `{"podEntries":{"pod":{"cpuSet":"0-99999"}}}`, `podEntries["pod"].cpuSet: cpu list "0-99999": cpu id is not between 0 and 2047`, false, 2},
		{"data", `{` + good + `0,"data":"{","dataChecksum":1}`, "data: JSON object: EOF", true, 4},
		{"data without sum", `{` + good + `0,"data":"{}"}`, "checkpoint is corrupted: dataChecksum is 0, the content gives 694314937", true, 4},
		{"sum without data", `{` + good + `0,"dataChecksum":7}`, "data: not a JSON object: EOF", true, 4},
		{"entry in data", `{"data":"{\"entries\":{\"p\":{\"c\":\"x\"}}}","dataChecksum":1}`, `data.entries["p"]["c"]: cpu list "x": not a number`, true, 4},
		{"baseline", `{"data":"{\"baselines\":{\"p\":{\"c\":{\"baseline\":\"x\"}}}}","dataChecksum":1}`, `data.baselines["p"]["c"]: cpu list "x": not a number`, true, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ReadCPU([]byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, ErrCorrupt) != tc.corrupt || got.Version != tc.version {
				t.Errorf("version %d, error %v; want %d, %s", got.Version, err, tc.version, tc.want)
			}
			if errors.Is(err, ErrEmpty) != (tc.name == "empty") {
				t.Errorf("ErrEmpty: %v", err)
			}
		})
	}

	// A wrong checksum and a bad entry do not hide the rest.
	got, err := ReadCPU([]byte(`{"policyName":"static","defaultCpuSet":"0,4","entries":{"p":{"a":"1-2","b":"x"}},"checksum":5}`))
	want := CPUState{
		Version: 2, PolicyName: "static", Default: set(t, "0,4"), Entries: map[string]map[string]cpuset.Set{"p": {"a": set(t, "1-2")}},
		Checksums: []Checksum{{Field: "checksum", Stored: 5, Computed: got.Checksums[0].Computed}},
	}
	var sum *ChecksumError
	if d := cmp.Diff(want, got); d != "" || !errors.As(err, &sum) || sum.Checksum != got.Checksums[0] || !strings.Contains(err.Error(), `entries["p"]["b"]`) {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestReadMemoryWrong(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"empty", "", "checkpoint is empty"},
		{"node null", `{"machineState":{"0":null}}`, `machineState["0"]: not a JSON object: "null"`},
		{"table null", `{"machineState":{"0":{"memoryMap":{"memory":null}}}}`, `machineState["0"].memoryMap["memory"]: not a JSON object`},
		{"node id", `{"machineState":{"zero":{}}}`, `machineState["zero"]: not the id of a NUMA node`},
		{"total", `{"machineState":{"0":{"memoryMap":{"memory":{"total":18446744073709551616}}}}}`, `machineState["0"].memoryMap["memory"].total: not a whole number below 2^64: "18446744073709551616"`},
		{"assignments", `{"machineState":{"0":{"numberOfAssignments":1e3}}}`, `machineState["0"].numberOfAssignments: not a whole number: "1e3"`},
		{"cells", `{"machineState":{"0":{"cells":[0,"1"]}}}`, `machineState["0"].cells[1]: not a whole number`},
		{"size", `{"entries":{"p":{"c":[{"size":1},{"size":-5}]}}}`, `entries["p"]["c"][1].size: not a whole number below 2^64: "-5"`},
		{"blocks", `{"entries":{"p":{"c":{}}}}`, `entries["p"]["c"]: not a list: "{}"`},
		{"affinity", `{"podEntries":{"p":{"memoryBlocks":[{"numaAffinity":"0"}]}}}`, `podEntries["p"].memoryBlocks[0].numaAffinity: not a list`},
		{"pod entry", `{"podEntries":{"p":7}}`, `podEntries["p"]: not a JSON object`},
		{"sum", `{"policyName":"None","machineState":{},"checksum":9}`, "checkpoint is corrupted: checksum is 9, the content gives"},
		{"data", `{"data":"x","dataChecksum":9}`, "data: not a JSON object"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ReadMemory([]byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v; want %s", err, tc.want)
			}
			if errors.Is(err, ErrCorrupt) != (tc.name == "sum" || tc.name == "data") || errors.Is(err, ErrEmpty) != (tc.name == "empty") {
				t.Errorf("kind of %v", err)
			}
			for uid, containers := range got.Entries {
				if len(containers) > 0 {
					t.Errorf("bad entry of %s kept: %v", uid, containers)
				}
			}
			if len(got.PodEntries) > 0 || len(got.MachineState) > 0 {
				t.Errorf("bad parts kept: %+v", got)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	got, err := ReadCPU([]byte(`{"policyname":"none","DEFAULTCPUSET":"1","surprise":1,"entries":{"p":{"c":"1"}},"entries":{"p":{"c":"2","c":"3"},"q":{}},"podEntries":{"p":{"cpuSet":"2","x y":0}}}`))
	if err != nil || got.PolicyName != "none" || got.Default != set(t, "1") || got.Entries["p"]["c"] != set(t, "3") {
		t.Errorf("%+v, %v", got, err)
	}
	want := []string{
		"unknown field surprise", "entries stands twice, the last one counts", `entries["p"].c stands twice, the last one counts`,
		`unknown field podEntries["p"]."x y"`,
	}
	if d := cmp.Diff(want, got.Notes); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
	many := strings.Repeat(`"x":{},`, 1000)
	if got, _ = ReadCPU([]byte(`{` + many + `"policyName":"none"}`)); len(got.Notes) != maxProblems {
		t.Errorf("%d notes", len(got.Notes))
	}
}

func TestLegacyDiffers(t *testing.T) {
	file := func(legacy, data string) []byte {
		quoted, _ := json.Marshal(data)
		return []byte(`{` + legacy + `,"checksum":0,"data":` + string(quoted) + `,"dataChecksum":` + jsonNumber(dataChecksum(data, 0).Computed) + `}`)
	}
	cpu, err := ReadCPU(file(
		`"policyName":"static","defaultCpuSet":"0-1","entries":{"p":{"a":"2","b":"3,4","c":"7"}},"podEntries":{"q":{"cpuSet":"1"}}`,
		`{"policyName":"static","defaultCpuSet":"0","entries":{"p":{"a":"2","b":"3-4"},"q":{"x":"5"}}}`))
	want := []string{
		`defaultCpuSet: "0-1", but data has "0"`, `entries["p"]["c"]: "7", but data has none`,
		`entries["q"]["x"]: none, but data has "5"`, `podEntries["q"]: "1", but data has none`,
	}
	if d := cmp.Diff(want, cpu.LegacyDiffers); d != "" || err != nil || cpu.Default != set(t, "0") {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}

	memory, err := ReadMemory(file(
		`"policyName":"Static","machineState":{"0":{"numberOfAssignments":1},"1":{}},"entries":{"p":{"a":[{"size":5}]}}`,
		`{"policyName":"Static","machineState":{"0":{"numberOfAssignments":2},"2":{}},"entries":{"p":{"a":[{"size":6}]}}}`))
	if err != nil || len(memory.LegacyDiffers) != 4 || memory.Entries["p"]["a"][0].Size != 6 {
		t.Errorf("%v, %q", err, memory.LegacyDiffers)
	}
	for i, prefix := range []string{`machineState["0"]: "<*>{NumberOfAssignments:(int)1`, `machineState["1"]: `, `machineState["2"]: none, but data has `, `entries["p"]["a"]: "[{NUMAAffinity:`} {
		if !strings.HasPrefix(memory.LegacyDiffers[i], prefix) {
			t.Errorf("difference %d is %s", i, memory.LegacyDiffers[i])
		}
	}

	var entries []string
	for i := range 40 {
		entries = append(entries, jsonNumber(strings.Repeat("x", i+1))+`:"1"`)
	}
	cpu, _ = ReadCPU(file(`"entries":{"p":{`+strings.Join(entries, ",")+`}}`, `{}`))
	if n := len(cpu.LegacyDiffers); n != maxProblems+1 || cpu.LegacyDiffers[n-1] != "and 24 more" {
		t.Errorf("%d differences, the last %s", n, cpu.LegacyDiffers[n-1])
	}
}

func TestManyBadEntries(t *testing.T) {
	var entries []string
	for i := range 10_000 {
		entries = append(entries, jsonNumber(jsonNumber(i))+`:{"c":"x"}`)
	}
	_, err := ReadCPU([]byte(`{"entries":{` + strings.Join(entries, ",") + `}}`))
	if err == nil || len(err.Error()) > 2000 || !strings.HasSuffix(err.Error(), "and 9984 more") {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}

func FuzzReadCPU(f *testing.F) {
	for name, data := range states(f) {
		if strings.HasPrefix(name, "cpu/") {
			f.Add(data)
		}
	}
	f.Add([]byte(`{"podEntries":{"p":{"cpuSet":"1"},"q":null},"entries":{"p":null},"baselines":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		state, err := ReadCPU(data)
		state.Assignments()
		state.AllCPUs()
		for _, sum := range state.Checksums[:min(1, len(state.Checksums))] {
			if !sum.OK && !errors.Is(err, ErrCorrupt) {
				t.Errorf("wrong checksum without ErrCorrupt: %v", err)
			}
		}
		if err == nil && (state.Version < 1 || state.Version > 4 || len(state.Checksums) == 0) {
			t.Errorf("no error, but %+v", state)
		}
	})
}

func FuzzReadMemory(f *testing.F) {
	for name, data := range states(f) {
		if strings.HasPrefix(name, "memory/") {
			f.Add(data)
		}
	}
	f.Add([]byte(`{"machineState":{"0":null,"1":{"memoryMap":{"memory":null},"cells":null}},"podEntries":{"p":{"memoryBlocks":null}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		state, err := ReadMemory(data)
		state.Assignments()
		state.Nodes()
		if err == nil && (state.Version < 1 || state.Version > 3 || len(state.Checksums) == 0) {
			t.Errorf("no error, but %+v", state)
		}
	})
}
