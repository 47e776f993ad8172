package checkpoint

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/jsonobject"
)

// rawCPU is the file's fields with CPU lists as they were written, which is what the checksum is made of.
type rawCPU struct {
	policyName, defaultCPUSet string
	entries                   map[string]map[string]string
	containerIDs              map[string]string // form 1
	podEntries                map[string]string
	baselines                 map[string]map[string]string
	checksum                  uint64
	data                      string
	dataChecksum              uint64
	whole                     bool // every field had the right type, so that the checksum can be recomputed
}

func (c *rawCPU) read(r *reader, path string, data []byte) {
	problems := r.problems()
	c.entries = map[string]map[string]string{}
	c.podEntries = map[string]string{}
	known := map[string]func(string, json.RawMessage){
		"policyName":    func(p string, v json.RawMessage) { r.text(p, v, &c.policyName) },
		"defaultCpuSet": func(p string, v json.RawMessage) { r.text(p, v, &c.defaultCPUSet) },
		"entries":       func(p string, v json.RawMessage) { c.readEntries(r, p, v) },
		"podEntries":    func(p string, v json.RawMessage) { c.readPodEntries(r, p, v) },
	}
	if path == "" {
		known["checksum"] = func(p string, v json.RawMessage) { r.unsigned(p, v, &c.checksum) }
		known["data"] = func(p string, v json.RawMessage) { r.text(p, v, &c.data) }
		known["dataChecksum"] = func(p string, v json.RawMessage) { r.unsigned(p, v, &c.dataChecksum) }
	} else {
		known["baselines"] = func(p string, v json.RawMessage) { c.readBaselines(r, p, v) }
	}
	r.fields(path, data, known)
	c.whole = r.problems() == problems
}

func (c *rawCPU) readEntries(r *reader, path string, raw json.RawMessage) {
	if jsonobject.IsNull(raw) {
		c.entries = nil
		return
	}
	if c.entries == nil {
		c.entries = map[string]map[string]string{}
	}
	r.entries(path, raw, func(path, key string, value json.RawMessage) {
		if len(value) > 0 && value[0] == '"' {
			if c.containerIDs == nil {
				c.containerIDs = map[string]string{}
			}
			var list string
			r.text(path, value, &list)
			c.containerIDs[key] = list
			return
		}
		c.entries[key] = nil
		if jsonobject.IsNull(value) {
			return
		}
		containers := map[string]string{}
		c.entries[key] = containers
		r.entries(path, value, func(path, name string, value json.RawMessage) {
			var list string
			r.text(path, value, &list)
			containers[name] = list
		})
	})
	if len(c.containerIDs) > 0 && len(c.entries) > 0 {
		r.fail(path, errors.New("some entries are by container id (form 1) and some by pod"))
	}
}

func (c *rawCPU) readPodEntries(r *reader, path string, raw json.RawMessage) {
	if jsonobject.IsNull(raw) {
		c.podEntries = nil
		return
	}
	if c.podEntries == nil {
		c.podEntries = map[string]string{}
	}
	r.entries(path, raw, func(path, uid string, value json.RawMessage) {
		var list string
		if !jsonobject.IsNull(value) {
			r.fields(path, value, map[string]func(string, json.RawMessage){
				"cpuSet": func(p string, v json.RawMessage) { r.text(p, v, &list) },
			})
		}
		// The checksum is made of the parsed set.
		if _, err := cpuset.Parse(list); err != nil {
			r.fail(path+".cpuSet", err)
			return
		}
		c.podEntries[uid] = list
	})
}

func (c *rawCPU) readBaselines(r *reader, path string, raw json.RawMessage) {
	if jsonobject.IsNull(raw) {
		return
	}
	if c.baselines == nil {
		c.baselines = map[string]map[string]string{}
	}
	r.entries(path, raw, func(path, uid string, value json.RawMessage) {
		containers := map[string]string{}
		c.baselines[uid] = containers
		if jsonobject.IsNull(value) {
			return
		}
		r.entries(path, value, func(path, name string, value json.RawMessage) {
			var list string
			if !jsonobject.IsNull(value) {
				r.fields(path, value, map[string]func(string, json.RawMessage){
					"baseline": func(p string, v json.RawMessage) { r.text(p, v, &list) },
				})
			}
			containers[name] = list
		})
	})
}

// state parses the CPU lists. An entry whose list is not one is left out and named in the errors.
func (c *rawCPU) state(r *reader, path string) CPUState {
	state := CPUState{PolicyName: c.policyName}
	var err error
	if state.Default, err = cpuset.Parse(c.defaultCPUSet); err != nil {
		r.fail(path+"defaultCpuSet", err)
	}
	state.Entries = parseNested(r, path+"entries", c.entries)
	state.Baselines = parseNested(r, path+"baselines", c.baselines)
	state.PodEntries = parseSets(r, path+"podEntries", c.podEntries)
	state.ContainerIDs = parseSets(r, path+"entries", c.containerIDs)
	return state
}

func parseNested(r *reader, path string, raw map[string]map[string]string) map[string]map[string]cpuset.Set {
	if len(raw) == 0 {
		return nil
	}
	sets := map[string]map[string]cpuset.Set{}
	for _, uid := range slices.Sorted(maps.Keys(raw)) {
		sets[uid] = parseSets(r, path+"["+cut.Quote(uid)+"]", raw[uid])
	}
	return sets
}

func parseSets(r *reader, path string, raw map[string]string) map[string]cpuset.Set {
	if len(raw) == 0 {
		return nil
	}
	sets := map[string]cpuset.Set{}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		set, err := cpuset.Parse(raw[name])
		if err != nil {
			r.fail(path+"["+cut.Quote(name)+"]", err)
			continue
		}
		sets[name] = set
	}
	return sets
}
