package diagnose

import (
	"strings"
	"testing"
)

func TestTemplates(t *testing.T) {
	const spec = `{"containers": [{"name": "app", "resources": {"limits": {"cpu": "2"}}}]}`
	for _, c := range []struct{ text, want string }{
		{"kind: Pod\nmetadata: {name: a}\nspec: " + spec, "default/a"},
		{`{"kind": "Pod", "metadata": {"name": "a", "namespace": "n"}, "spec": ` + spec + `}`, "n/a"},
		{"# two\n---\nkind: Pod\nmetadata: {name: a}\nspec: " + spec + "\n---\n---\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: " + spec + "}}\n", "default/a default/d"},
		{"kind: CronJob\nmetadata: {name: c}\nspec: {jobTemplate: {spec: {template: {spec: " + spec + "}}}}", "default/c"},
		{"kind: PodTemplate\nmetadata: {name: p}\ntemplate: {spec: " + spec + "}", "default/p"},
		{`{"kind": "List", "items": [{"kind": "Pod", "metadata": {"generateName": "g-"}, "spec": ` + spec + `}]}`, "default/g-"},
		{`{"kind": "List", "items": [{"kind": "PodList", "items": []}]}`, "!a list inside a list"},
		{"", "!no pod in it"},
		{"# nothing\n---\n", "!no pod in it"},
		{"[", "!document 1: not an object"},
		{"kind: Service\nmetadata: {name: s}", "!neither a Pod nor a workload"},
		{"metadata: {name: s}", "!it has no kind"},
		{"kind: Pod\nmetadata: {name: a}", "!"},
		{"kind: Pod\nmetadata: {name: a}\nspec: {containers: []}", "!spec.containers is empty"},
		{"kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: x}, {name: x}]}", "!stands twice"},
		{"kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: x, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}", "!more than the limit"},
		{"kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: x, resources: {limits: {cpu: -1}}}]}", "!is negative"},
		{"kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: x, resources: {limits: {cpu: much}}}]}", "!"},
		{"kind: Pod\nspec: " + spec, "!metadata.name is missing"},
	} {
		found, err := Templates([]byte(c.text), "file:x")
		var names []string
		for _, p := range found {
			names = append(names, p.Namespace+"/"+p.Name)
		}
		if want, isErr := strings.CutPrefix(c.want, "!"); isErr {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", c.text, err, want)
			}
		} else if err != nil || strings.Join(names, " ") != c.want {
			t.Errorf("%q: %v, %v", c.text, names, err)
		}
	}
}
