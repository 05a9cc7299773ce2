/// The server's own secrets in the data directory.
package enum ServerSecrets {
    /// Names of files. A backup of the store is worth little without them: the keys sign what was handed out, and unseal relay tasks.
    package static let files = [KeyFile.fileName, RelayVault.fileName, FirstToken.fileName]
}
