package account

import (
	"slices"
	"strings"
	"testing"
)

// The users of an address share a salt, so that a password is compared with all of them at once.
func TestPasswordsOfOneAddress(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	hash := func(password string, others ...string) string {
		t.Helper()
		h, err := HashPassword(ctx, password, others...)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := hash("the first password")
	second := hash("the second password", "", first)
	apart := hash("the second password")
	saltOf := func(hash string) string { return strings.Split(hash, "$")[4] }
	if saltOf(first) != saltOf(second) || saltOf(second) == saltOf(apart) {
		t.Errorf("got the salts %s, %s and %s, want the first two equal", saltOf(first), saltOf(second), saltOf(apart))
	}
	right, err := VerifyPasswords(ctx, "the second password", first, "", second, apart)
	if want := []bool{false, false, true, true}; err != nil || !slices.Equal(right, want) {
		t.Errorf("got %v, %v, want %v", right, err, want)
	}
	if right, err := VerifyPasswords(ctx, "the second password"); err != nil || len(right) != 0 {
		t.Errorf("nobody: got %v, %v", right, err)
	}
}

// An address has one id for each slot, and none of another address.
func TestUserIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, email := range []string{"a@b.example", "a@b.example\x01", "a@b.example1"} {
		for _, id := range UserIDs(email) {
			seen[id] = true
		}
	}
	if len(seen) != 3*Slots || UserIDs(" A@b.example")[0] != UserID("a@b.example") {
		t.Errorf("got %d ids of three addresses, want %d", len(seen), 3*Slots)
	}
}
