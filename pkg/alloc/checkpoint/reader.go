package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/jsonobject"
)

// maxProblems bounds the number of errors and differences that are told one by one.
const maxProblems = 16

// reader collects what is wrong or odd in a file, so that one bad entry does not hide the others.
type reader struct {
	errs  []error
	more  int
	notes []string
}

func (r *reader) fail(path string, err error) {
	if len(r.errs) == maxProblems {
		r.more++
		return
	}
	if path != "" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	r.errs = append(r.errs, err)
}

// problems counts what was wrong so far.
func (r *reader) problems() int { return len(r.errs) + r.more }

func (r *reader) err() error {
	errs := r.errs
	if r.more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", r.more))
	}
	return errors.Join(errs...)
}

func (r *reader) note(format string, args ...any) {
	if len(r.notes) < maxProblems {
		r.notes = append(r.notes, fmt.Sprintf(format, args...))
	}
}

// object calls field for each member of the object that raw holds. field returns false for a key that it does not know, which is
// noted: kubelets ignore such keys, and older ones read newer files because of it. Of a key that stands twice the last one counts.
func (r *reader) object(path string, raw json.RawMessage, field func(key string, value json.RawMessage) bool) {
	members, err := jsonobject.Members(raw)
	if err != nil {
		r.fail(path, err)
		return
	}
	seen := map[string]bool{}
	for _, m := range members {
		if seen[m.Key] {
			r.note("%s stands twice, the last one counts", join(path, m.Key))
		}
		seen[m.Key] = true
		if !field(m.Key, m.Value) {
			r.note("unknown field %s", join(path, m.Key))
		}
	}
}

// fields is object for a struct of the kubelet: keys without regard to case, as encoding/json takes them, and null leaves a field alone.
func (r *reader) fields(path string, raw json.RawMessage, known map[string]func(path string, value json.RawMessage)) {
	r.object(path, raw, func(key string, value json.RawMessage) bool {
		for name, read := range known {
			if strings.EqualFold(name, key) {
				read(join(path, name), value)
				return true
			}
		}
		return false
	})
}

// entries is object for a map of the kubelet.
func (r *reader) entries(path string, raw json.RawMessage, entry func(path, key string, value json.RawMessage)) {
	r.object(path, raw, func(key string, value json.RawMessage) bool {
		entry(path+"["+cut.Quote(key)+"]", key, value)
		return true
	})
}

func (r *reader) text(path string, raw json.RawMessage, to *string) {
	if !jsonobject.IsNull(raw) && json.Unmarshal(raw, to) != nil {
		r.fail(path, fmt.Errorf("not a string: %s", cut.Quote(string(raw))))
	}
}

func (r *reader) unsigned(path string, raw json.RawMessage, to *uint64) {
	if jsonobject.IsNull(raw) {
		return
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		r.fail(path, fmt.Errorf("not a whole number below 2^64: %s", cut.Quote(string(raw))))
		return
	}
	*to = n
}

func (r *reader) integer(path string, raw json.RawMessage, to *int) {
	if jsonobject.IsNull(raw) {
		return
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		r.fail(path, fmt.Errorf("not a whole number: %s", cut.Quote(string(raw))))
		return
	}
	*to = n
}

// integers reads a list; null is the nil list, which the checksum tells from the empty one.
func (r *reader) integers(path string, raw json.RawMessage, to *[]int) {
	items := r.list(path, raw)
	if *to = nil; items != nil {
		*to = make([]int, len(items))
	}
	for i, item := range items {
		r.integer(path+"["+strconv.Itoa(i)+"]", item, &(*to)[i])
	}
}

// list returns the elements of a list, nil for null or for what is no list.
func (r *reader) list(path string, raw json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		r.fail(path, fmt.Errorf("not a list: %s", cut.Quote(string(raw))))
		return nil
	}
	return items
}

func join(path, key string) string {
	if strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || key == "" || len(key) > 40 {
		key = cut.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
