import CommandSupport
import ServerData
import Store
import Support

/// The PostgreSQL database of the settings: whether it answers, and what of it a server depends on.
enum DatabaseCheck {
    /// No result without such a database. Blocks, as long as the connection's limits of time allow.
    static func run(_ subject: LocalSubject) -> [DoctorResult] {
        guard case .postgres(let location) = StoreLocation(subject.config) else { return [] }
        do throws(StoreError) {
            return [self.judge(try DatabaseProbe.probe(location, nowMs: { WallClock.ms }))]
        } catch {
            return [.fail(self.name, DisplayText.escaped("\(error.path): \(error.problem)"), error.advice)]
        }
    }

    private static let name = "database"
    /// Milliseconds by which the two clocks may differ.
    private static let tolerance: Int64 = 1_000

    static func judge(_ facts: DatabaseProbe.Facts) -> DoctorResult {
        let ahead = abs(facts.aheadMs)
        let clock = "clock \(ahead) ms \(facts.aheadMs < 0 ? "behind" : "ahead of") this machine's"
        let measured =
            "\(facts.location): PostgreSQL \(facts.version), \(facts.isEncrypted ? "TLS" : "no TLS"), "
            + "synchronous_commit \(facts.synchronousCommit), answers in \(HumanUnits.decimal(facts.roundTripMs) ?? "?") ms, \(clock)"
        if ahead > 60_000 { return .fail(self.name, measured, "set the wrong clock right (timedatectl)") }
        if facts.synchronousCommit == "off" {
            return .warn(self.name, measured, "turn synchronous_commit on: without it a crash takes back what the server has answered")
        }
        if ahead > self.tolerance { return .warn(self.name, measured, "set the wrong clock right (timedatectl)") }
        if facts.roundTripMs > 20 {
            return .warn(self.name, measured, "every change of a room waits for several answers: put server and database close together")
        }
        return .pass(self.name, measured)
    }
}
