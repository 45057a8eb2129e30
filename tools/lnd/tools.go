//go:build tools

// Package tools names lnd's programs, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "github.com/lightningnetwork/lnd/cmd/lncli"
	_ "github.com/lightningnetwork/lnd/cmd/lnd"
)
