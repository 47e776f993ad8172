package diagnose

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		{limited("cpu", "-1m"), "!spec.containers[app].resources.limits[cpu] -1m is negative"},
		{limited("cpu", "1E"), "!spec.containers[app].resources.limits[cpu] 1E is more than the kubelet can count (it must be below 2^63-1 thousandths)"},
		{limited("cpu", "1e30"), "!1e30 is more than the kubelet can count"},
		{limited("cpu", "9223372036854775807"), "!is more than the kubelet can count"},
		{limited("cpu", "99999999999999999999"), "!is more than the kubelet can count"},
		{limited("memory", "16Ei"), "!limits[memory] 2^63-1 or more is more than the kubelet can count (it must be below 2^63-1)"},
		{limited("memory", "9223372036854775808"), "!is more than the kubelet can count"},
		{limited("memory", "1e30"), "!is more than the kubelet can count"},
		{limited("memory", "1e999999999"), "!document 1: a quantity out of range"},
		{limited("memory", "7Ei"), "default/a"},
		{limited("cpu", "9223372036854775"), "default/a"},
		{limited("example.com/gpu", "500m"), "!is not a whole number"},
		{"kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: x, resources: {limits: {memory: 5Ei}}}, {name: z, resources: {limits: {memory: 5Ei}}}]}", "!the requests for memory add up to 10Ei, more than"},
		{"kind: Pod\nmetadata: {name: a}\nspec: {overhead: {cpu: -1}, containers: [{name: x}]}", "!spec.overhead[cpu] -1 is negative"},
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

// limited is a pod with one limit.
func limited(name, amount string) string {
	return `{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "app", "resources": {"limits": {"` + name + `": "` + amount + `"}}}]}}`
}

func TestTemplatesRoundUp(t *testing.T) {
	for _, c := range []struct{ name, amount, want string }{
		{"cpu", "1999.9999m", "2"},
		{"cpu", "1n", "1m"},
		{"cpu", "1500m", "1500m"},
		{"memory", "0.0001", "1m"},
		{"memory", "64Mi", "64Mi"},
	} {
		found, err := Templates([]byte(limited(c.name, c.amount)), "file:x")
		if err != nil {
			t.Fatal(err)
		}
		q := found[0].Spec.Containers[0].Resources.Limits[corev1.ResourceName(c.name)]
		if q.String() != c.want {
			t.Errorf("%s %s: %s, want %s", c.name, c.amount, q.String(), c.want)
		}
	}
}
