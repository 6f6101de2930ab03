package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// build is what the linker knows of this binary.
type build struct {
	Version string `json:"version"` // the module's, "(devel)" for one built from a checkout
	Go      string `json:"go"`
	Commit  string `json:"commit,omitempty"` // empty if built without it
	Dirty   bool   `json:"dirty,omitempty"`  // the checkout had changes
	Time    string `json:"time,omitempty"`   // of the commit, RFC 3339
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Dirty = s.Value == "true"
		case "vcs.time":
			b.Time = s.Value
		case "GOARM":
			b.Arch += "v" + s.Value
		}
	}
	return b
}

func (b build) String() string {
	s := fmt.Sprintf("sip2gate %s %s %s/%s", b.Version, b.Go, b.OS, b.Arch)
	if b.Commit != "" {
		s += " commit " + b.Commit
		if b.Dirty {
			s += " with changes"
		}
		if b.Time != "" {
			s += " of " + b.Time
		}
	}
	return s
}

func runVersion(_ context.Context, t *terminal, args []string) int {
	flags := t.flags()
	asJSON := flags.Bool("json", false, "print it as one JSON object")
	if _, code, ok := t.parse(flags, args, 0, 0); !ok {
		return code
	}
	if *asJSON {
		t.json(thisBuild())
	} else {
		fmt.Fprintln(t.out, thisBuild())
	}
	return exitOK
}
