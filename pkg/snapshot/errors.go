package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrNotCollected says that a file is absent from a bundle that does not record
// what it left out, so nothing follows from the absence.
var ErrNotCollected = errors.New("not collected")

// What makes a tree unfit for a bundle, or a part of it unreadable.
var (
	ErrNoManifest     = errors.New("no " + manifestName + " at the top or one folder down")
	ErrTwoRoots       = errors.New("several folders hold a " + manifestName)
	ErrTooManyEntries = fmt.Errorf("more than %d entries", MaxEntries)
	ErrTooManyBytes   = fmt.Errorf("files of more than %d MiB in total", MaxTotalBytes>>20)
	ErrFileTooLarge   = fmt.Errorf("file larger than %d MiB", MaxFileBytes>>20)
	ErrPath           = errors.New("path that leaves the bundle or cannot be kept in one")
	ErrLink           = errors.New("symbolic or hard link")
	ErrSpecialFile    = errors.New("neither a regular file nor a folder")
	ErrDuplicate      = errors.New("path that occurs twice")
	ErrTruncated      = errors.New("archive ends early")
	ErrDamaged        = errors.New("not a gzip-compressed tar archive, or a damaged one")
	ErrOverhead       = errors.New("archive with far more bytes than its files need")
	ErrTrailingData   = errors.New("data after the end of the archive")
)

var (
	errFolder    = errors.New("is a folder")
	errNotFolder = errors.New("is not a folder")
)

// Reason is the short word for why something could not be had, as a report
// gives it: the reason of a gap, or what else kept a file from being read.
// It is "" for no error.
func Reason(err error) string {
	var gap *GapError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &gap):
		return gap.word()
	case errors.Is(err, ErrNotCollected):
		return ReasonNotCollected
	case errors.Is(err, fs.ErrNotExist):
		return ReasonNotFound
	case errors.Is(err, fs.ErrPermission):
		return ReasonForbidden
	case errors.Is(err, ErrFileTooLarge):
		return ReasonTooLarge
	}
	return ReasonUnreadable
}

// pathError names the file that err is about, once.
func pathError(op, name string, err error) error {
	if inner, ok := err.(*fs.PathError); ok {
		err = inner.Err
	}
	return &fs.PathError{Op: op, Path: printable(name), Err: err}
}

// textError keeps an error's identity and makes its text fit for a terminal:
// the messages of decoders quote what they read.
type textError struct {
	text string
	err  error
}

func (e *textError) Error() string { return e.text }
func (e *textError) Unwrap() error { return e.err }

func harmless(err error) error {
	const most = 300
	text := err.Error()
	if clean := printable(cut(text, most)); clean != text {
		return &textError{clean, err}
	}
	return err
}

// printable is s itself where that can be shown as it is, else s as %q.
func printable(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// quote is the %q of a stranger's text, cut to what a message can bear.
func quote[T ~string | ~[]byte](s T) string {
	const most = 80
	return strconv.Quote(cut(string(s), most))
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

func hasByte(s string, b byte) bool { return strings.IndexByte(s, b) >= 0 }
