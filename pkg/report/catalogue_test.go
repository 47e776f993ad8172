package report_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

var update = flag.Bool("update", false, "rewrite the index of the finding pages")

const (
	findingsDir = "../../docs/findings"
	indexFile   = "README.md"
	indexBegin  = "<!-- index: made from the catalogue by `make update-golden` -->\n"
	indexEnd    = "<!-- end of index -->\n"
)

// pageSections stand on every page in this order; others may follow.
var pageSections = []string{
	"What it says",
	"How it is told",
	"When it is only likely or possible",
	"What looks alike",
	"What to do",
}

var (
	kebabCase = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	heading   = regexp.MustCompile(`(?m)^## (.+)$`)
	link      = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)
)

func TestCatalogueEntries(t *testing.T) {
	groups := groupConstants(t)
	seen := map[report.Code]bool{}
	for _, e := range report.Catalogue() {
		if !kebabCase.MatchString(string(e.Code)) {
			t.Errorf("code %q is not kebab-case", e.Code)
		}
		if seen[e.Code] {
			t.Errorf("code %q stands twice", e.Code)
		}
		seen[e.Code] = true
		if !slices.Contains(report.Severities(), e.Severity) {
			t.Errorf("%s: severity %q", e.Code, e.Severity)
		}
		if !slices.Contains(groups, e.Group) {
			t.Errorf("%s: group %q is no declared constant", e.Code, e.Group)
		}
		if e.Title == "" || strings.TrimSpace(e.Title) != e.Title || strings.ContainsAny(e.Title, "|\n") {
			t.Errorf("%s: title %q cannot stand in a table", e.Code, e.Title)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, want := range report.Catalogue() {
		if got, ok := report.Lookup(want.Code); !ok || got != want {
			t.Errorf("Lookup(%q) = %+v, %v, want %+v", want.Code, got, ok, want)
		}
	}
	for _, code := range []report.Code{"", "no-such-code", "Memory"} {
		if got, ok := report.Lookup(code); ok || got != (report.Entry{}) {
			t.Errorf("Lookup(%q) = %+v, %v, want nothing", code, got, ok)
		}
	}
}

// TestCodeConstants keeps declared codes and catalogue the same.
func TestCodeConstants(t *testing.T) {
	var declared, entered []string
	for name, code := range constants(t, "Code") {
		declared = append(declared, code)
		if _, ok := report.Lookup(report.Code(code)); !ok {
			t.Errorf("constant %s = %q is not in the catalogue", name, code)
		}
	}
	for _, code := range codes() {
		entered = append(entered, string(code))
	}
	slices.Sort(declared)
	slices.Sort(entered)
	if diff := cmp.Diff(declared, entered); diff != "" {
		t.Errorf("declared constants and catalogue differ (-declared +catalogue):\n%s", diff)
	}
}

func TestFindingPages(t *testing.T) {
	for _, e := range report.Catalogue() {
		path := filepath.Join(findingsDir, string(e.Code)+".md")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%s has no page: %v", e.Code, err)
			continue
		}
		for _, wrong := range checkPage(e, string(data)) {
			t.Errorf("%s: %s", path, wrong)
		}
	}
	files, err := os.ReadDir(findingsDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		code, isPage := strings.CutSuffix(f.Name(), ".md")
		if f.Name() == indexFile {
			continue
		}
		if _, ok := report.Lookup(report.Code(code)); !isPage || !ok {
			t.Errorf("%s is the page of no entry of the catalogue", filepath.Join(findingsDir, f.Name()))
		}
	}
}

// checkPage lists what a page lacks of the shape that all of them have.
func checkPage(e report.Entry, page string) []string {
	var wrong []string
	head := fmt.Sprintf("# %s\n\n%s · %s\n\n", e.Code, e.Severity, e.Group)
	if !strings.HasPrefix(page, head) {
		wrong = append(wrong, fmt.Sprintf("begins with %q, want %q", page[:min(len(page), len(head))], head))
	}
	if !strings.HasSuffix(page, "\n") || strings.HasSuffix(page, "\n\n") {
		wrong = append(wrong, "does not end with one newline")
	}
	var sections []string
	found := heading.FindAllStringSubmatchIndex(page, -1)
	for i, m := range found {
		name, end := page[m[2]:m[3]], len(page)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		if strings.TrimSpace(page[m[1]:end]) == "" {
			wrong = append(wrong, fmt.Sprintf("section %q is empty", name))
		}
		sections = append(sections, name)
	}
	if got := sections[:min(len(sections), len(pageSections))]; !slices.Equal(got, pageSections) {
		wrong = append(wrong, fmt.Sprintf("has sections %q, want %q first", sections, pageSections))
	}
	for _, m := range link.FindAllStringSubmatch(page, -1) {
		text, target := m[1], m[2]
		code, isPage := strings.CutSuffix(target, ".md")
		if !isPage || strings.Contains(target, "/") {
			continue // not another finding
		}
		if _, ok := report.Lookup(report.Code(code)); !ok || text != code || code == string(e.Code) {
			wrong = append(wrong, fmt.Sprintf("link %s does not name another entry of the catalogue", m[0]))
		}
	}
	return wrong
}

// TestFindingIndex keeps the list of pages that of the catalogue, in its order
// within each group.
func TestFindingIndex(t *testing.T) {
	path := filepath.Join(findingsDir, indexFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), indexBegin)
	got, after, okEnd := strings.Cut(rest, indexEnd)
	if !ok || !okEnd {
		t.Fatalf("%s has no section between %q and %q", path, indexBegin, indexEnd)
	}
	want := index(groupConstants(t))
	if *update {
		if err := os.WriteFile(path, []byte(before+indexBegin+want+indexEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not the catalogue's index (-want +got):\n%s", path, diff)
	}
}

// index is a table for each group that has codes.
func index(groups []report.Group) string {
	var b strings.Builder
	for _, group := range groups {
		var rows strings.Builder
		for _, e := range report.Catalogue() {
			if e.Group == group {
				fmt.Fprintf(&rows, "| [%s](%s.md) | %s | %s |\n", e.Code, e.Code, e.Severity, e.Title)
			}
		}
		if rows.Len() > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n| code | severity | title |\n|---|---|---|\n%s", group, rows.String())
		}
	}
	return b.String() + "\n"
}

// TestIndexHoldsEveryEntry guards index itself: a group that it does not know
// would drop its codes silently.
func TestIndexHoldsEveryEntry(t *testing.T) {
	rows := strings.Count(index(groupConstants(t)), ".md)")
	if want := len(report.Catalogue()); rows != want {
		t.Errorf("the index has %d rows, the catalogue %d entries", rows, want)
	}
}

// TestCheckPage shows that a page can be wrong.
func TestCheckPage(t *testing.T) {
	all := report.Catalogue()
	e, other := all[0], all[1]
	page := fmt.Sprintf("# %s\n\n%s · %s\n", e.Code, e.Severity, e.Group)
	for _, s := range pageSections {
		page += "\n## " + s + "\n\nText.\n"
	}
	page += fmt.Sprintf("\n[%s](%s.md), [bundle](../bundle.md), [kernel](https://docs.kernel.org)\n", other.Code, other.Code)
	if wrong := checkPage(e, page); len(wrong) > 0 {
		t.Fatalf("a right page is called wrong: %q", wrong)
	}
	for name, bad := range map[string]string{
		"title":           strings.Replace(page, string(e.Code), string(other.Code), 1),
		"severity":        strings.Replace(page, string(e.Severity)+" ·", "none ·", 1),
		"group":           strings.Replace(page, string(e.Group), "Elsewhere", 1),
		"missing section": strings.Replace(page, "## "+pageSections[2], "## Something else", 1),
		"empty section":   strings.Replace(page, "Text.", "", 1),
		"unknown code":    strings.Replace(page, string(other.Code)+".md", "no-such-code.md", 1),
		"link to itself":  page + fmt.Sprintf("[%s](%s.md)\n", e.Code, e.Code),
		"no newline":      strings.TrimSuffix(page, "\n"),
		"nothing":         "",
	} {
		if len(checkPage(e, bad)) == 0 {
			t.Errorf("%s: a wrong page is called right", name)
		}
	}
}

func codes() []report.Code {
	var out []report.Code
	for _, e := range report.Catalogue() {
		out = append(out, e.Code)
	}
	return out
}

// groupConstants are the groups in the order of their declaration.
func groupConstants(t *testing.T) []report.Group {
	t.Helper()
	var out []report.Group
	eachConstant(t, "Group", func(_, value string) { out = append(out, report.Group(value)) })
	return out
}

// constants are the declared constants of a type by name.
func constants(t *testing.T, typ string) map[string]string {
	t.Helper()
	out := map[string]string{}
	eachConstant(t, typ, func(name, value string) { out[name] = value })
	return out
}

// eachConstant reads catalogue.go's string constants of a type.
func eachConstant(t *testing.T, typ string, f func(name, value string)) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "catalogue.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			value := spec.(*ast.ValueSpec)
			if id, ok := value.Type.(*ast.Ident); !ok || id.Name != typ {
				continue
			}
			if len(value.Names) != len(value.Values) {
				t.Fatalf("constant %s has no value of its own", value.Names[0].Name)
			}
			for i, name := range value.Names {
				lit, ok := value.Values[i].(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					t.Fatalf("constant %s is no string literal", name.Name)
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatalf("constant %s: %v", name.Name, err)
				}
				f(name.Name, text)
				found = true
			}
		}
	}
	if !found {
		t.Fatalf("catalogue.go declares no constant of type %s", typ)
	}
}
