package kernlog

import "bytes"

// taskColumns are the columns of a task table behind "[  pid  ]", by name.
// Kernels differ in which they print. The last is the name.
type taskColumns []string

// parseTaskHeader reads "[  pid  ]   uid  tgid total_vm      rss … name".
func parseTaskHeader(text []byte) (taskColumns, bool) {
	end := bytes.IndexByte(text[:min(len(text), 16)], ']')
	if end < 0 || string(bytes.TrimSpace(text[1:end])) != "pid" {
		return nil, false
	}
	var columns taskColumns
	for field := range bytes.FieldsSeq(text[end+1:]) {
		columns = append(columns, string(field))
		if len(columns) > 32 {
			return nil, false
		}
	}
	if len(columns) < 3 || columns[len(columns)-1] != "name" {
		return nil, false
	}
	return columns, true
}

// parseRow reads "[    288]     0   288   332311 …  985 eat".
func (columns taskColumns) parseRow(text []byte) (Task, bool) {
	var t Task
	end := bytes.IndexByte(text[:min(len(text), 24)], ']')
	if end < 0 {
		return t, false
	}
	var ok bool
	if t.PID, ok = parseID(bytes.TrimSpace(text[1:end])); !ok {
		return t, false
	}
	rest := text[end+1:]
	var parts int
	for _, column := range columns[:len(columns)-1] {
		rest = bytes.TrimLeft(rest, " ")
		field, after, found := bytes.Cut(rest, []byte(" "))
		if !found || !t.set(column, field) {
			return t, false
		}
		switch column {
		case "rss_anon", "rss_file", "rss_shmem":
			parts++
		case "pgtables_bytes":
			t.HasPgtables = true
		}
		rest = after
	}
	t.HasRSSParts = parts == 3
	t.Name = string(rest[:min(len(rest), 64)])
	return t, true
}

func (t *Task) set(column string, field []byte) (ok bool) {
	switch column {
	case "uid":
		t.UID, ok = parseID(field)
	case "tgid":
		t.TGID, ok = parseID(field)
	case "total_vm":
		t.TotalVM, ok = parseUint(field)
	case "rss":
		t.RSS, ok = parseUint(field)
	case "rss_anon":
		t.RSSAnon, ok = parseUint(field)
	case "rss_file":
		t.RSSFile, ok = parseUint(field)
	case "rss_shmem":
		t.RSSShmem, ok = parseUint(field)
	case "pgtables_bytes":
		t.PgtablesBytes, ok = parseUint(field)
	case "swapents":
		t.SwapEnts, ok = parseUint(field)
	case "oom_score_adj":
		t.OOMScoreAdj, ok = parseAdj(field)
	default:
		return true
	}
	return ok
}
