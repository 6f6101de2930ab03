//go:build !linux

package pty

import "errors"

func open() (*Pair, error) { return nil, errors.ErrUnsupported }
