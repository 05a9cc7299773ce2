import CommandSupport
import LibC
import Support

/// The machine's clock: whether it can be right, and whether something keeps it right.
enum ClockCheck {
    /// Seconds since 1970. A correct clock shows a later time, since this program was built after it.
    private static let programMade: Int64 = 1_764_000_000
    /// Twenty years, in seconds.
    private static let longLife: Int64 = 20 * 365 * 86_400
    /// Seconds by which two correct clocks may differ.
    private static let tolerance: Int64 = 5

    /// Blocks.
    static func run(_ subject: LocalSubject) -> [DoctorResult] {
        [self.judge(now: Int64(time(nil)), state: ClockState.now, newestFile: self.newestFile(subject.directory))]
    }

    /// `newestFile`: the server's last write to its data directory. Times are in seconds since 1970.
    static func judge(now: Int64, state: ClockState, newestFile: Int64?) -> DoctorResult {
        let name = "clock"
        let shown = TimeText.short("\(Moment(milliseconds: now * 1_000))")
        let set = "set it right (timedatectl, chronyc makestep): signed URLs, tokens and certificates go by it"
        if now > self.programMade + self.longLife { return .fail(name, "\(shown), which is decades after this program was made", set) }
        if now < self.programMade { return .fail(name, "\(shown), which is before this program was made", set) }
        if let newestFile, newestFile > now + 60 {
            return .fail(name, "\(shown), \(Span.short(milliseconds: (newestFile - now) * 1_000)) before the server's newest file", set)
        }
        switch state {
        case .synchronised: return .pass(name, "\(shown), synchronised")
        case .free:
            return .warn(
                name, "\(shown), but nothing synchronises it", "run chrony or systemd-timesyncd: a clock of its own drifts by seconds a day"
            )
        case .unknown: return .pass(name, "\(shown); whether it is synchronised cannot be read here")
        }
    }

    /// Compares this machine's clock with the server's, by the Date of an answer (RFC 9110 §6.6.1, whole seconds). Seconds since 1970.
    static func judge(here: Int64, server: Int64?) -> DoctorResult {
        let name = "server's clock"
        guard let server else { return .skip(name, "the answer has no Date") }
        let ahead = server - here
        guard abs(ahead) > self.tolerance else { return .pass(name, "as here, within \(max(1, abs(ahead))) s") }
        let words = Span.short(milliseconds: abs(ahead) * 1_000)
        let measured = "\(words) \(ahead > 0 ? "ahead of" : "behind") this machine's"
        let advice = "set the wrong one right (timedatectl): signed URLs that a back end makes would begin or end at the wrong time"
        return abs(ahead) > 60 ? .fail(name, measured, advice) : .warn(name, measured, advice)
    }

    private static func newestFile(_ directory: String) -> Int64? {
        ["earshot.db-wal", "earshot.db", "stats.db-wal"].compactMap { FileTime.modified("\(directory)/\($0)") }.max()
    }
}
