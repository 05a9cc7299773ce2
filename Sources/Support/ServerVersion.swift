/// The version of this program, printed by `earshot --version`. CHANGELOG.md lists its changes.
package enum ServerVersion {
    /// Semantic Versioning 2.0.0.
    package static let text = "0.1.0-dev"
}
