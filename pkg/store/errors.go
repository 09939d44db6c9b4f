package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/parley-chat/parley/pkg/apperr"
)

// errAway says that no server that can take writes has been seen for longer than our patience.
var errAway = errors.New("no server can be reached")

// translate gives the driver's error our code. What is ours to handle (no document, duplicate key) stays visible; a caller
// that gave up gets its own context's error; everything that a later try may find repaired is Unavailable.
func translate(ctx context.Context, act string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mongo.ErrNoDocuments), mongo.IsDuplicateKeyError(err):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: %w", act, ctx.Err())
	case passing(err):
		return apperr.Away("MongoDB", fmt.Errorf("%s: %w", act, err))
	}
	return fmt.Errorf("%s: %w", act, err)
}

// passing reports whether err is of the kind that goes away by itself.
func passing(err error) bool {
	if errors.Is(err, errAway) || errors.Is(err, mongo.ErrClientDisconnected) || mongo.IsTimeout(err) || mongo.IsNetworkError(err) {
		return true
	}
	if _, ok := errors.AsType[topology.ServerSelectionError](err); ok {
		return true
	}
	if _, ok := errors.AsType[topology.ConnectionError](err); ok {
		return true
	}
	if e, ok := errors.AsType[mongo.ServerError](err); ok {
		return slices.ContainsFunc(passingCodes(), e.HasErrorCode)
	}
	return false
}

// passingCodes are the server's answers while it starts, stops, elects, or is out of reach of its peers (MongoDB
// specifications, "Retryable Writes" and "Server Discovery And Monitoring").
func passingCodes() []int {
	return []int{
		6,     // HostUnreachable
		7,     // HostNotFound
		50,    // MaxTimeMSExpired
		64,    // WriteConcernFailed
		89,    // NetworkTimeout
		91,    // ShutdownInProgress
		112,   // WriteConflict
		134,   // ReadConcernMajorityNotAvailableYet
		189,   // PrimarySteppedDown
		262,   // ExceededTimeLimit
		9001,  // SocketException
		10107, // NotWritablePrimary
		11600, // InterruptedAtShutdown
		11602, // InterruptedDueToReplStateChange
		13435, // NotPrimaryNoSecondaryOk
		13436, // NotPrimaryOrSecondary
	}
}

// missing turns the driver's word for "no such document" into NotFound.
func missing(err error, in collection) error {
	if errors.Is(err, mongo.ErrNoDocuments) {
		return notFound(in)
	}
	return err
}

// notFound is the answer when a collection does not have the id.
func notFound(c collection) error {
	switch c {
	case companies:
		return apperr.New(apperr.NotFound, "COMPANY_NOT_FOUND", "Company not found")
	case accessTokens:
		return apperr.New(apperr.NotFound, "ACCESS_TOKEN_NOT_FOUND", "Access token not found")
	case applications:
		return apperr.New(apperr.NotFound, "APPLICATION_NOT_FOUND", "Chat application not found")
	case templates:
		return apperr.New(apperr.NotFound, "TEMPLATE_NOT_FOUND", "Template not found")
	case visitors:
		return apperr.New(apperr.NotFound, "VISITOR_NOT_FOUND", "Visitor not found")
	case chats:
		return apperr.New(apperr.NotFound, "CHAT_NOT_FOUND", "Chat not found")
	case messages, statuses:
		return apperr.New(apperr.NotFound, "MESSAGE_NOT_FOUND", "Message not found")
	}
	return apperr.New(apperr.NotFound, "NOT_FOUND", "Not found")
}
