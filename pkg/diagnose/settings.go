package diagnose

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
)

// Settings are changes of a kubelet's configuration, or version, that a
// question supposes.
type Settings []Setting

// Setting is one of them: a field of the KubeletConfiguration, for maps with
// its key. An empty value takes it out.
type Setting struct{ Field, Key, Value string }

func (s Setting) String() string {
	if s.Key != "" {
		return s.Field + "." + s.Key + "=" + s.Value
	}
	return s.Field + "=" + s.Value
}

// Texts are the settings as they are written.
func (s Settings) Texts() []string {
	var out []string
	for _, one := range s {
		out = append(out, one.String())
	}
	return out
}

// kubeletVersion is no field of the configuration.
const kubeletVersion = "kubeletVersion"

// settable are the fields that decide about admission; true: a map, whose key
// follows behind a dot.
var settable = map[string]bool{
	kubeletVersion:                 false,
	"cpuManagerPolicy":             false,
	"cpuManagerPolicyOptions":      true,
	"reservedSystemCPUs":           false,
	"memoryManagerPolicy":          false,
	"reservedMemory":               false,
	"topologyManagerPolicy":        false,
	"topologyManagerScope":         false,
	"topologyManagerPolicyOptions": true,
	"kubeReserved":                 true,
	"systemReserved":               true,
	"evictionHard":                 true,
	"featureGates":                 true,
}

// SettableFields names what --set takes, maps with a dot behind them.
func SettableFields() []string {
	var out []string
	for name, isMap := range settable {
		if isMap {
			name += "."
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// A comma separates settings only before the next field: CPU sets have commas.
var nextSetting = regexp.MustCompile(`,\s*([A-Za-z]+)(?:\.[^=,]+)?=`)

// ParseSettings reads FIELD=VALUE and FIELD.KEY=VALUE, several separated by
// commas.
func ParseSettings(texts []string) (Settings, error) {
	var out Settings
	for _, text := range texts {
		for _, one := range splitSettings(text) {
			name, value, ok := strings.Cut(one, "=")
			if !ok {
				return nil, fmt.Errorf("%q is not FIELD=VALUE", clip(one))
			}
			field, key, hasKey := strings.Cut(strings.TrimSpace(name), ".")
			isMap, known := settable[field]
			switch {
			case !known:
				return nil, fmt.Errorf("%q: no such setting; there are %s", clip(one), strings.Join(SettableFields(), " "))
			case isMap != hasKey || hasKey && key == "":
				return nil, fmt.Errorf("%q: %s", clip(one), map[bool]string{true: field + " is a map: name the key behind a dot", false: field + " has no keys"}[isMap])
			}
			s := Setting{field, key, strings.TrimSpace(value)}
			if err := s.check(); err != nil {
				return nil, fmt.Errorf("%q: %w", clip(one), err)
			}
			out = append(out, s)
		}
	}
	return out, nil
}

func splitSettings(text string) []string {
	var out []string
	from := 0
	for _, m := range nextSetting.FindAllStringSubmatchIndex(text, -1) {
		if _, known := settable[text[m[2]:m[3]]]; known {
			out = append(out, text[from:m[0]])
			from = m[0] + 1
		}
	}
	return append(out, text[from:])
}

func (s Setting) check() error {
	switch s.Field {
	case kubeletVersion:
		_, _, err := alloc.RulesFor(s.Value)
		return err
	case "reservedSystemCPUs":
		_, err := cpuset.Parse(s.Value)
		return err
	case "reservedMemory":
		_, err := parseReservedMemory(s.Value)
		return err
	case "featureGates":
		if s.Value != "" && s.Value != "true" && s.Value != "false" {
			return errors.New("a feature gate is true or false")
		}
	}
	return nil
}

// parseReservedMemory reads the form of the kubelet's flag:
// "0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=1Gi".
func parseReservedMemory(text string) ([]any, error) {
	var out []any
	for _, part := range strings.Split(text, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		node, limits, ok := strings.Cut(part, ":")
		var id int
		if _, err := fmt.Sscanf(node, "%d", &id); err != nil || !ok {
			return nil, fmt.Errorf("%q is not NODE:TYPE=AMOUNT", clip(part))
		}
		list := map[string]any{}
		for _, limit := range strings.Split(limits, ",") {
			name, amount, ok := strings.Cut(limit, "=")
			if !ok {
				return nil, fmt.Errorf("%q is not TYPE=AMOUNT", clip(limit))
			}
			list[strings.TrimSpace(name)] = strings.TrimSpace(amount)
		}
		out = append(out, map[string]any{"numaNode": id, "limits": list})
	}
	return out, nil
}

// with is the node as if its kubelet had these settings. What was read of the
// node is shared; what follows from the configuration is made anew.
func (n *nodeCase) with(set Settings) (*nodeCase, error) {
	if len(set) == 0 {
		return n, nil
	}
	data, err := n.files.File("configz.json")
	if err != nil {
		return nil, fmt.Errorf("the kubelet's configuration: %w", err)
	}
	changed := *n
	if data, err = set.overlay(data); err != nil {
		return nil, fmt.Errorf("the kubelet's configuration: %w", err)
	}
	if changed.config, changed.configErr = kubeletconfig.Decode(data); changed.configErr != nil {
		return nil, changed.configErr
	}
	version := ""
	if n.object != nil {
		version = n.object.Status.NodeInfo.KubeletVersion
	}
	for _, s := range set {
		if s.Field == kubeletVersion {
			version, changed.supposedVersion = s.Value, s.Value
		}
	}
	if r, exact, err := alloc.RulesFor(version); err == nil {
		changed.rules, changed.rulesExact, changed.rulesKnown = r, exact, true
	}
	changed.rules = changed.rules.With(changed.config)
	set.lackGates(n.gaps)
	if n.object != nil {
		before, errBefore := n.config.Reservation(n.capacity())
		after, errAfter := changed.config.Reservation(n.capacity())
		if err := errors.Join(errBefore, errAfter); err != nil {
			return nil, fmt.Errorf("the kubelet's reservation: %w", err)
		}
		changed.object = n.object.DeepCopy()
		for name, q := range changed.object.Status.Allocatable {
			if was, is := before[name].Quantity, after[name].Quantity; was.Cmp(is) != 0 {
				q.Add(was)
				q.Sub(is)
				if q.Sign() < 0 {
					q.Set(0) // as the kubelet does (GetNodeAllocatable)
				}
				changed.object.Status.Allocatable[name] = q
			}
		}
	}
	// The state files stay as they are; whether the kubelet takes them is for its start.
	changed.managers = func() (managers, error) {
		m, err := n.managers()
		if err != nil {
			return m, err
		}
		m.config.Kubelet, m.config.Rules = changed.config, changed.rules
		reserved, err := changed.config.Reservation(n.capacity())
		if err != nil {
			return m, err
		}
		m.config.Reservation = corev1.ResourceList{}
		for name, r := range reserved {
			m.config.Reservation[name] = r.Quantity
		}
		return m, nil
	}
	return &changed, nil
}

// lackGates leaves a gap for every gate that is not listed here.
func (s Settings) lackGates(gaps *gap.Log) {
	for _, one := range s {
		if one.Field == "featureGates" && one.Value != "" && !kubeletconfig.GateListed(one.Key) {
			gaps.Lack("featureGates."+clip(one.Key), "this feature gate is not known here, so nothing was changed for it",
				"whether the kubelet has the gate, without which it does not start, and what it changes", "")
		}
	}
}

// replaced says of a supposed reservation of cpu that it is void, else nothing.
func (n *nodeCase) replaced(s Setting) string {
	if (s.Field == "systemReserved" || s.Field == "kubeReserved") && s.Key == string(corev1.ResourceCPU) && !n.config.ReservedSystemCPUs.IsEmpty() {
		return "; without effect, for the number of reservedSystemCPUs " + n.config.ReservedSystemCPUs.String() + " stands for every reservation of cpu"
	}
	return ""
}

// overlay writes the settings into a configuration as /configz serves it.
func (s Settings) overlay(configz []byte) ([]byte, error) {
	var document map[string]any
	d := json.NewDecoder(strings.NewReader(string(configz)))
	d.UseNumber()
	if err := d.Decode(&document); err != nil {
		return nil, err
	}
	config := document
	if inner, ok := document["kubeletconfig"].(map[string]any); ok {
		config = inner
	}
	for _, one := range s {
		var value any = one.Value
		switch one.Field {
		case kubeletVersion:
			continue
		case "featureGates":
			value = one.Value == "true"
		case "reservedMemory":
			list, err := parseReservedMemory(one.Value)
			if err != nil {
				return nil, err
			}
			value = list
		}
		into, key := config, one.Field
		if one.Key != "" {
			inner, ok := config[one.Field].(map[string]any)
			if !ok {
				inner = map[string]any{}
				config[one.Field] = inner
			}
			into, key = inner, one.Key
		}
		if one.Value == "" {
			delete(into, key)
		} else {
			into[key] = value
		}
	}
	return json.Marshal(document)
}
