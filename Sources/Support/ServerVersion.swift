/// The version of this program, which `earshot --version` prints. CHANGELOG.md says what is in it.
package enum ServerVersion {
    /// Semantic Versioning 2.0.0.
    package static let text = "0.1.0-dev"
}
