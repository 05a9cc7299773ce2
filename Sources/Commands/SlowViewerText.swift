import CommandSupport
import Support

/// A stream's slow viewers in words, as the console tells of them: how many are behind, which is the worst, and whose fault that is.
enum SlowViewerText {
    /// Sessions that are asked for. However many viewers there are, those that are furthest behind are among them.
    static let most = 100

    /// Nil when no viewer is slow. `sessions`: players of the stream, the furthest behind first; the ones of another node are not among them.
    static func paragraph(of name: String, _ stream: JSONValue?, _ sessions: [JSONValue]) -> String? {
        guard let slow = stream["slowViewers"].integer, slow > 0 else { return nil }
        let viewers = max(slow, stream["viewers"].integer ?? slow)
        let count = viewers == 1 ? "Its only viewer is slow" : "\(slow) of its \(viewers) viewers \(slow == 1 ? "is" : "are") slow"
        return [
            "\(count).", self.worst(name, stream, sessions), self.advice(slow, of: viewers),
            "`earshot sessions list --stream \(DisplayText.escaped(name)) --sort behind` shows them.",
        ]
        .compactMap { $0 }.joined(separator: " ")
    }

    /// "The worst, 10.0.0.9 (flv), is 2400 ms behind live; it missed 120 frames so far."
    private static func worst(_ name: String, _ stream: JSONValue?, _ sessions: [JSONValue]) -> String? {
        for session in sessions {
            guard let play = session["playing"].list.first(where: { $0["stream"].string == name && $0["isSlow"].bool == true }),
                let address = session["address"].string, let behind = play["behindMs"].integer
            else { continue }
            let transport = session["transport"].plain.map { " (\(DisplayText.escaped($0)))" } ?? ""
            let skipped = play["framesSkipped"].integer ?? 0
            let missed = skipped > 0 ? "; it missed \(skipped) frames so far" : ""
            let line = self.line(play["line"]).map { "; \($0)" } ?? ""
            return "The worst, \(DisplayText.escaped(address))\(transport), is \(behind) ms behind live\(missed)\(line)."
        }
        return stream["worstBehindMs"].integer.map { "The worst is \($0) ms behind live." }
    }

    private static func line(_ line: JSONValue?) -> String? {
        switch line["verdict"].string {
        case "lossy": line["lossPercent"].plain.map { "\($0) % of its packets are lost" }
        case "congested":
            line["queuedMs"].plain.map { "packets wait \($0) ms on the way to it: the stream has more bits than its line takes" }
        default: nil
        }
    }

    private static func advice(_ slow: Int64, of viewers: Int64) -> String {
        if slow < viewers { return "The others get this stream in time: look at the network or the player of those that are slow." }
        return viewers > 1
            ? "All viewers of this stream are slow: look at the network of this server first." : "Its network or its player is too slow."
    }
}
