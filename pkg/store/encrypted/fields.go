package encrypted

import (
	"maps"
	"slices"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/webhook"
)

// This file lists everything that is encrypted. A new secret of a record is one more line here.
//
// Passwords, sessions, access tokens and invitations are not in it: they are stored as hashes.

// transform returns the new value of a secret. place is the kind of the record, its id and the field, and
// belongs to the ciphertext: it decrypts nowhere else.
type transform func(place, value string) (string, error)

// identitySecrets transforms the secrets with which a company's server proves identities.
func identitySecrets(appID string, secrets []chat.IdentitySecret, by transform) ([]chat.IdentitySecret, error) {
	secrets = slices.Clone(secrets)
	for i := range secrets {
		if err := apply(by, "applications/"+appID+"/identitySecrets", (*string)(&secrets[i].Value)); err != nil {
			return nil, err
		}
	}
	return secrets, nil
}

// application transforms the secrets of an application.
func application(a chat.Application, by transform) (_ chat.Application, err error) {
	a.Identity.Secrets, err = identitySecrets(a.ID, a.Identity.Secrets, by)
	return a, err
}

// user transforms the secrets of the second factor, and the key that signs the cookies of known devices.
func user(u account.User, by transform) (account.User, error) {
	if err := apply(by, "users/"+u.ID+"/deviceKey", &u.DeviceKey); err != nil {
		return u, err
	}
	if err := apply(by, "users/"+u.ID+"/totpSecret", &u.TOTPSecret); err != nil {
		return u, err
	}
	return u, apply(by, "users/"+u.ID+"/totpPending", &u.TOTPPending)
}

// endpoint transforms the keys that sign deliveries, and the headers' values, which authenticate them.
func endpoint(e webhook.Endpoint, by transform) (webhook.Endpoint, error) {
	e.Secrets = slices.Clone(e.Secrets)
	for i := range e.Secrets {
		if err := apply(by, "webhookEndpoints/"+e.ID+"/secrets", &e.Secrets[i].Value); err != nil {
			return e, err
		}
	}
	e.Headers = maps.Clone(e.Headers)
	for name, value := range e.Headers {
		if err := apply(by, "webhookEndpoints/"+e.ID+"/headers/"+name, &value); err != nil {
			return e, err
		}
		e.Headers[name] = value
	}
	return e, nil
}

// bot transforms the keys that sign the requests to a company's server.
func bot(b bots.Bot, by transform) (bots.Bot, error) {
	b.Secrets = slices.Clone(b.Secrets)
	for i := range b.Secrets {
		if err := apply(by, "bots/"+b.AppID+"/secrets", &b.Secrets[i].Value); err != nil {
			return b, err
		}
	}
	return b, nil
}

// connection transforms the key of a company at a language model.
func connection(c bots.Connection, by transform) (bots.Connection, error) {
	err := apply(by, "modelConnections/"+c.ID+"/apiKey", &c.APIKey)
	return c, err
}

// apply transforms a value. An empty one is no secret.
func apply(by transform, place string, value *string) (err error) {
	if *value != "" {
		*value, err = by(place, *value)
	}
	return err
}
