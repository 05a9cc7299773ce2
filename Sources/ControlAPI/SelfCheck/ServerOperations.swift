package import ServerConfiguration
package import Streaming

/// Reload and drain of the running server, for calls. Any thread.
package protocol ServerOperations: AnyObject, Sendable {
    /// Reloads settings and certificate. `by`: the caller, for the log.
    func reload(by who: String) async -> Result<ReloadReport, ReloadRefusal>
    /// Ends the server once its pushes have ended, or after the time limit.
    func drain(_ request: DrainRequest, by who: String) async -> DrainStart
    /// Nil unless a drain is under way.
    var drainState: DrainState? { get }
    /// Settings whose changes wait for a restart, as of the last reload.
    var waitingSettings: [ConfigChange.Setting] { get }
    /// Time of the last successful reload, in milliseconds since 1970; nil before the first.
    var reloadedAtMs: Int64? { get }
    /// The settings in force, with their sources.
    var settings: [SettingInForce] { get }
    /// The reason why the last reload changed nothing, as one line; nil when it succeeded, and before the first.
    var reloadProblem: String? { get }
    /// The reason why no publish or play can begin now; nil when one can.
    func problem() async -> String?
}

/// The changes of a reload.
package struct ReloadReport: Sendable {
    package let change: ConfigChange
    /// Whether the server has a certificate; if so, the reload has read it again.
    package let hasCertificate: Bool
    package let warnings: [String]

    package init(change: ConfigChange, hasCertificate: Bool, warnings: [String]) {
        self.change = change
        self.hasCertificate = hasCertificate
        self.warnings = warnings
    }
}

/// The reason why a reload changed nothing.
package enum ReloadRefusal: Error, Sendable {
    /// Another reload is under way.
    case busy
    /// Each message names the file, line and setting where it can, and the expected value.
    case mistakes([String])
}
