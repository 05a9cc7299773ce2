import Access

/// The server's own secrets in the data directory.
package enum ServerSecrets {
    /// File names. A backup of the store is worth little without these: the keys signed the URLs handed out, and unseal links.
    package static let files = [KeyFile.fileName, URLVault.fileName, SessionKey.fileName, FirstToken.fileName]
}
