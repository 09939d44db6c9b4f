package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/parley-chat/parley/pkg/apperr"
)

// translate maps SQLite's errors to codes. The contract's own errors are unchanged; a cancelled caller gets its
// context's error; every error that a retry may fix is Unavailable.
func translate(ctx context.Context, act string, err error) error {
	if err == nil {
		return nil
	}
	if _, ours := errors.AsType[*apperr.Error](err); ours {
		return err
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%s: %w", act, ctx.Err())
	}
	if isTransient(err) {
		return apperr.Unreachable("SQLite", fmt.Errorf("%s: %w", act, err))
	}
	return fmt.Errorf("%s: %w", act, err)
}

// isTransient reports whether a retry may succeed without a change of the program or the file.
func isTransient(err error) bool {
	if errors.Is(err, errClosed) || errors.Is(err, errTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, // another process is writing
		sqlite.ResultLocked,
		sqlite.ResultProtocol, // two processes opened the file at the same time
		sqlite.ResultFull,     // the disk is full
		sqlite.ResultIOErr,
		sqlite.ResultCantOpen,
		sqlite.ResultReadOnly, // the disk is read-only, or the file was moved
		sqlite.ResultNoMem,
		sqlite.ResultPerm,
		sqlite.ResultInterrupt: // a timeout
		return true
	}
	return false
}

func isBusy(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy }

// engineError returns err unless it is an error of the contract, after which the connection is still usable.
func engineError(err error) error {
	if _, ours := errors.AsType[*apperr.Error](err); ours {
		return nil
	}
	return err
}
