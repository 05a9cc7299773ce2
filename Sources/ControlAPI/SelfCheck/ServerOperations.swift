package import ServerConfiguration

/// The server's run, as calls can change it. Any thread.
package protocol ServerOperations: AnyObject, Sendable {
    /// Reads settings and certificate again. `by`: for the log.
    func reload(by who: String) async -> Result<ReloadReport, ReloadRefusal>
    /// Ends the server when its pushes have ended, or after the time. Nil: as in the settings.
    func drain(timeoutMs: Int64?, reconnectTo: String?, by who: String) async -> DrainStart
    /// Nil unless the server is about to end.
    var drainState: DrainState? { get }
    /// Settings that have changed in the file and wait for a restart, as of the last reload.
    var waitingSettings: [ConfigChange.Setting] { get }
    /// Milliseconds since 1970; nil before the first one that was not refused.
    var reloadedAtMs: Int64? { get }
    /// Why the server can begin nothing new; nil when it can.
    func problem() async -> String?
}

/// The changes of a reload.
package struct ReloadReport: Sendable {
    package let change: ConfigChange
    /// Whether there is a certificate; it was read again then.
    package let hasCertificate: Bool
    package let warnings: [String]

    package init(change: ConfigChange, hasCertificate: Bool, warnings: [String]) {
        self.change = change
        self.hasCertificate = hasCertificate
        self.warnings = warnings
    }
}

/// Why a reload changed nothing.
package enum ReloadRefusal: Error, Sendable {
    /// Another one is under way.
    case busy
    /// Each names file, line and setting where it can, and what was expected.
    case mistakes([String])
}

/// A drain under way.
package struct DrainState: Sendable {
    package let leftMs: Int64
    package let pushes: Int
    package let viewers: Int
    /// Clients that were asked to connect again.
    package let asked: Int

    package init(leftMs: Int64, pushes: Int, viewers: Int, asked: Int) {
        self.leftMs = leftMs
        self.pushes = pushes
        self.viewers = viewers
        self.asked = asked
    }
}

package enum DrainStart: Sendable {
    case begun(DrainState)
    /// Nothing was begun twice.
    case alreadyUnderWay(DrainState)
}
