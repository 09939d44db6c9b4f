package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
)

var (
	errUnreachable = errors.New("no server reachable")
	// errContended is returned if a write repeatedly can neither update nor insert its document.
	errContended = errors.New("the document keeps appearing and disappearing")
)

// translate maps the driver's errors to codes. "No document" and "duplicate key" stay visible, because callers handle
// them; a cancelled caller gets its context's error; every error that a retry may fix is Unavailable.
func translate(ctx context.Context, act string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mongo.ErrNoDocuments), mongo.IsDuplicateKeyError(err):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: %w", act, ctx.Err())
	case transient(err):
		return apperr.Unreachable("MongoDB", fmt.Errorf("%s: %w", act, err))
	}
	return fmt.Errorf("%s: %w", act, err)
}

// transient reports whether a retry may succeed without intervention.
func transient(err error) bool {
	if errors.Is(err, errUnreachable) || errors.Is(err, errContended) || errors.Is(err, mongo.ErrClientDisconnected) ||
		mongo.IsTimeout(err) || mongo.IsNetworkError(err) {
		return true
	}
	if _, ok := errors.AsType[topology.ServerSelectionError](err); ok {
		return true
	}
	if _, ok := errors.AsType[topology.ConnectionError](err); ok {
		return true
	}
	if e, ok := errors.AsType[mongo.ServerError](err); ok {
		return slices.ContainsFunc(transientCodes(), e.HasErrorCode)
	}
	return false
}

// transientCodes are the errors of a server that starts, stops, elects, or cannot reach its peers (MongoDB
// specifications, "Retryable Writes" and "Server Discovery And Monitoring").
func transientCodes() []int {
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

// notFound returns the error for a missing id in a collection.
func notFound(c collection) error {
	switch c {
	case companies:
		return apperr.CompanyNotFound.New()
	case accessTokens:
		return apperr.AccessTokenNotFound.New()
	case applications:
		return apperr.ApplicationNotFound.New()
	case templates:
		return apperr.TemplateNotFound.New()
	case visitors, identities:
		return apperr.VisitorNotFound.New()
	case chats:
		return apperr.ChatNotFound.New()
	case users:
		return apperr.UserNotFound.New()
	case sessions:
		return apperr.SessionNotFound.New()
	case webhookEndpoints:
		return apperr.WebhookEndpointNotFound.New()
	case webhookDeliveries:
		return apperr.WebhookDeliveryNotFound.New()
	case botSettings:
		return apperr.BotNotFound.New()
	case modelConnections:
		return apperr.ConnectionNotFound.New()
	case botActions:
		return apperr.BotActionNotFound.New()
	case knowledgeDocuments:
		return apperr.DocumentNotFound.New()
	case messages, statuses:
		return apperr.MessageNotFound.New()
	}
	return store.RecordNotFound()
}
