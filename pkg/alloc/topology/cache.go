package topology

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

// errNoCache says that cadvisor would give up on the caches of a CPU.
var errNoCache = errors.New("cache cannot be described")

// cpuCaches is what cadvisor gets for one CPU: its caches in the order of their folders, or an error that matches errNoCache.
type cpuCaches struct {
	list []levelCache
	err  error
}

// readCaches reads the caches of every online CPU into the kernel's view and returns them as cadvisor would get them.
func (t *Topology) readCaches(fsys fs.FS, cpus []numbered, online onlineCPUs) (map[int]cpuCaches, error) {
	all := map[int]cpuCaches{}
	var kernel cacheList
	for _, c := range cpus {
		if !online.has(c.id) {
			continue
		}
		dir := cpuDir + "/" + c.name + "/cache"
		names, err := readDir(fsys, dir)
		if err != nil {
			return nil, err
		}
		var of cpuCaches
		if len(names) == 0 {
			of.err = fmt.Errorf("%w: no cache folder", errNoCache)
		}
		for _, name := range names {
			if !strings.HasPrefix(name, "index") {
				continue
			}
			cache, level, err := t.readCache(fsys, dir+"/"+name)
			switch {
			case err != nil:
				return nil, err
			case level.err != nil && of.err == nil:
				of.err = level.err
			}
			of.list = append(of.list, level.list...)
			if cache.Level > 0 && !cache.Shared.IsEmpty() {
				kernel.add(cache)
			}
		}
		if of.err != nil {
			of.list = nil
		}
		all[c.id] = of
	}
	t.Kernel.Caches = kernel.sorted()
	return all, nil
}

// readCache reads one cache folder, for the kernel's view as far as it goes, and for cadvisor, which wants every file.
func (t *Topology) readCache(fsys fs.FS, dir string) (Cache, cpuCaches, error) {
	var cache Cache
	var of cpuCaches
	lacks := func(name, text string, ok bool) {
		if of.err == nil {
			what := "no " + name
			if ok {
				what = name + " is " + cut.Quote(text)
			}
			of.err = fmt.Errorf("%w: %s/%s", errNoCache, dir[strings.LastIndexByte(dir, '/')+1:], what)
		}
	}
	text := map[string]string{}
	have := map[string]bool{}
	for _, name := range []string{"id", "size", "level", "type", "shared_cpu_map", "shared_cpu_list"} {
		var err error
		if text[name], have[name], err = readFile(fsys, dir+"/"+name); err != nil {
			return Cache{}, cpuCaches{}, err
		}
	}

	var err error
	if cache.ID, err = strconv.Atoi(text["id"]); err != nil {
		lacks("id", text["id"], have["id"])
	}
	cache.HasID = err == nil
	kib, isKiB := strings.CutSuffix(text["size"], "K")
	if cache.SizeKiB, err = strconv.ParseUint(kib, 10, 64); err != nil || !isKiB {
		cache.SizeKiB = 0
		lacks("size", text["size"], have["size"])
	}
	if cache.Level, err = strconv.Atoi(text["level"]); err != nil {
		lacks("level", text["level"], have["level"])
	}
	if cache.Type = text["type"]; !have["type"] {
		lacks("type", "", false)
	}
	if have["shared_cpu_list"] {
		if cache.Shared, err = cpuset.Parse(text["shared_cpu_list"]); err != nil {
			t.note(dir+"/shared_cpu_list", err.Error())
		}
	}
	n := cache.Shared.Size()
	if have["shared_cpu_map"] {
		if n, err = parseMapSize(text["shared_cpu_map"]); err != nil {
			lacks("shared_cpu_map", text["shared_cpu_map"], true)
		}
	} else if n == 0 {
		lacks("shared_cpu_map", "", false)
	}
	of.list = []levelCache{{id: cache.ID, level: cache.Level, cpus: n}}
	return cache, of, nil
}

// parseMapSize counts the bits of a CPU mask: hexadecimal words joined by commas.
func parseMapSize(text string) (int, error) {
	n := 0
	for word := range strings.SplitSeq(text, ",") {
		w, err := strconv.ParseUint(word, 16, 64)
		if err != nil {
			return 0, fmt.Errorf("cpu mask %s: not hexadecimal", cut.Quote(text))
		}
		n += bits.OnesCount64(w)
	}
	return n, nil
}

// cacheList collects each cache once.
type cacheList struct {
	seen map[cacheKey]bool
	list []Cache
}

type cacheKey struct {
	level  int
	typ    string
	shared cpuset.Set
}

func (l *cacheList) add(c Cache) {
	key := cacheKey{c.Level, c.Type, c.Shared}
	if l.seen[key] {
		return
	}
	if l.seen == nil {
		l.seen = map[cacheKey]bool{}
	}
	l.seen[key] = true
	l.list = append(l.list, c)
}

func (l *cacheList) sorted() []Cache {
	first := func(s cpuset.Set) int { id, _ := s.First(); return id }
	slices.SortStableFunc(l.list, func(a, b Cache) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Type, b.Type), cmp.Compare(first(a.Shared), first(b.Shared)))
	})
	return l.list
}
