// Package auth authenticates the callers of a server. Package client adds tokens to calls.
//
// A server knows its clients by a bearer token, by a certificate, or both. A token is 256 random bits whose SHA-256
// stands in a file (ParseTokens), or a JSON Web Token signed by a key of a JWKS file (ParseKeys). Files are read again
// when they change, so tokens and certificates come and go without a restart.
//
// The hash of a token needs neither salt nor a slow function: those slow down guessing of secrets that people choose,
// and 256 random bits cannot be guessed. A slow hash would only let callers without a token waste the server's time.
package auth
