package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/parley-chat/parley/pkg/apperr"
)

// translate gives SQLite's error our code. The contract's own errors stay as they are; a caller that gave up gets its own
// context's error; what a later try may find repaired is Unavailable.
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
		return apperr.Away("SQLite", fmt.Errorf("%s: %w", act, err))
	}
	return fmt.Errorf("%s: %w", act, err)
}

// isTransient reports whether err is of the kind that goes away without a change of the program or of the file.
func isTransient(err error) bool {
	if errors.Is(err, errClosed) || errors.Is(err, errTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, // another process writes
		sqlite.ResultLocked,
		sqlite.ResultProtocol, // two processes opened the file at once
		sqlite.ResultFull,     // the disk is
		sqlite.ResultIOErr,
		sqlite.ResultCantOpen,
		sqlite.ResultReadOnly, // the disk is, or the file was moved away
		sqlite.ResultNoMem,
		sqlite.ResultPerm,
		sqlite.ResultInterrupt: // a deadline
		return true
	}
	return false
}

func isBusy(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy }

// engineError is err unless it is one of the contract's: then the connection is sound.
func engineError(err error) error {
	if _, ours := errors.AsType[*apperr.Error](err); ours {
		return nil
	}
	return err
}
