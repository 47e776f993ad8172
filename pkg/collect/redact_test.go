package collect

import (
	"encoding/json"
	"testing"
)

// Of words and values only those that are sizes stay, whatever stands beside them.
func TestRedactVariablesAndArguments(t *testing.T) {
	for _, c := range []struct{ container, want string }{
		{`{"env":[{"name":"GOMAXPROCS","value":"hush"}]}`, `{"env":[{"name":"GOMAXPROCS"}]}`},
		{`{"env":[{"name":"GOMEMLIMIT","value":"400MiB"},{"name":"GOGC","value":"off"}]}`, `{"env":[{"name":"GOMEMLIMIT","value":"400MiB"},{"name":"GOGC","value":"off"}]}`},
		{`{"env":[{"name":"NODE_OPTIONS","value":"--require=/hush --max-old-space-size=300"}]}`, `{"env":[{"name":"NODE_OPTIONS","value":"--max-old-space-size=300"}]}`},
		{`{"env":[{"name":"JAVA_OPTS","value":"-Dp=hush"}]}`, `{"env":[{"name":"JAVA_OPTS"}]}`},
		{`{"env":[{"name":"K","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}`, `{"env":[{"name":"K","valueFrom":{"secretKeyRef":{"key":"k","name":"s"}}}]}`},
		{`{"env":[{"name":"K","value":7}]}`, `{"env":[{"name":"K"}]}`},
		{`{"command":["java","-XX:+UseSerialGC"],"args":["-Xmx1g;hush","-XX:OnOutOfMemoryError=hush",7]}`, `{"args":[],"command":["-XX:+UseSerialGC"]}`},
		{`{"lifecycle":{"preStop":{"exec":{"command":["hush"]}},"postStart":{"httpGet":{"path":"/?hush","port":8080}}}}`, `{"lifecycle":{"postStart":{"httpGet":{"port":8080}},"preStop":{"exec":{}}}}`},
		{`"hush"`, `"hush"`}, // no container, and no API server's
	} {
		got, key, err := redact([]byte(`{"metadata":{"name":"p","namespace":"n"},"spec":{"containers":[`+c.container+`]}}`), "pods", own)
		want := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n"},"spec":{"containers":[` + c.want + `]}}`
		if err != nil || key != "n/p" || string(got) != want {
			t.Errorf("%v, %q: got %s, want %s", err, key, got, want)
		}
	}
}

// What is no object is refused; numbers beyond a float64 stay whole.
func TestRedactOddInput(t *testing.T) {
	for _, bad := range []string{``, `null`, `[]`, `7`} {
		if _, _, err := redact([]byte(bad), "pods", own); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	got, err := redactKubelet([]byte(`{"usageNanoCores":9007199254740993}`))
	if err != nil || !json.Valid(got) || string(got) != `{"usageNanoCores":9007199254740993}` {
		t.Errorf("%s, %v", got, err)
	}
}
