/// The version of this program, for `earshot --version` and for metrics. CHANGELOG.md says what is in it.
package enum ServerVersion {
    /// Semantic Versioning 2.0.0.
    package static let text = "0.1.0-dev"
}
