import ArgumentParser
import CommandSupport
import Support

extension StreamsCommand {
    /// `earshot streams why`: a stream's verdict, explained.
    struct Why: ServerCommand {
        static let configuration = CommandConfiguration(
            abstract: "Explain how a stream does: what is wrong, what it means, what to do.",
            discussion: """
                The verdict is good, degraded (viewers get the stream, but not as well as they could) or bad (pictures stand, or there is \
                no sound). A stream is judged once a second by what arrives from its publisher. Viewers that are too slow for it are told of \
                beside the verdict.
                """)
        @Argument(help: ArgumentHelp("The stream.", valueName: "APP/NAME")) var stream: StreamArgument
        @OptionGroup var options: ServerOptions

        func run(_ api: APIClient) async throws {
            let state = try await api.get(self.stream.segments)
            let stream = state["stream"]
            guard !stream.isNull else {
                let refusal = try await self.refusal(api)
                throw CommandFailure(
                    .notFound, "nobody pushes or plays \(self.stream); \(refusal ?? "`earshot streams list` shows what runs")")
            }
            let health = stream["health"]
            if self.options.json { return try Console.print(health.indented()) }
            if self.options.quiet { return try Console.print(health["verdict"].plain ?? "-") }
            for line in HealthText.explanation(of: "\(self.stream)", stream) { try Console.print(line) }
            if let slow = try await self.slowViewers(stream, api) {
                try Console.print("")
                try Console.print(slow)
            }
            // Without a verdict, a refused device may be the reason why nobody pushes.
            if health["verdict"].plain == nil, let refusal = try await self.refusal(api) {
                try Console.print("\(refusal.prefix(1).uppercased())\(refusal.dropFirst())")
            }
        }

        /// The stream's slow viewers in words; nil when there are none.
        private func slowViewers(_ stream: JSONValue?, _ api: APIClient) async throws -> String? {
            guard stream["slowViewers"].integer ?? 0 > 0 else { return nil }
            // A device's name stands for the stream of its room, by which sessions list it.
            let name = StreamText.path(stream) ?? "\(self.stream.app)/\(self.stream.name)"
            let query: [(String, String?)] = [
                ("stream", name), ("role", "player"), ("sort", "-behind"), ("limit", "\(SlowViewerText.most)"),
            ]
            var sessions: [JSONValue] = []
            // A back end's token sees no connections.
            do {
                sessions = try await api.get(["sessions"], query)["list"].list
            } catch let failure as CommandFailure where failure.status == .unauthorised {}
            return SlowViewerText.paragraph(of: name, stream, sessions)
        }

        /// "a push from 10.0.0.7 was refused 12 s ago, 3 times in all: … (credential_wrong)"; nil if no push was refused.
        private func refusal(_ api: APIClient) async throws -> String? {
            let query = [("app", self.stream.app), ("name", self.stream.name), ("action", "publish")]
            let answer: JSONValue
            do {
                answer = try await api.get(["streams", "refused"], query)
            } catch let failure as CommandFailure where [.notFound, .unauthorised].contains(failure.status) {
                // An older server lacks this call, and a back end's token may not ask.
                return nil
            }
            guard let newest = answer["list"].list.first else { return nil }
            guard let address = newest["clientAddress"].plain, let message = newest["message"].plain else { return nil }
            let count = newest["count"].integer ?? 1
            let often = count > 1 ? ", \(count) times in all" : ""
            let reason = newest["reason"].plain ?? "-"
            let age = TimeText.age(newest["lastAt"]).map { " \($0) ago" } ?? ""
            return "a push from \(DisplayText.escaped(address)) was refused\(age)\(often): "
                + "\(DisplayText.escaped(message)) (\(DisplayText.escaped(reason)))"
        }
    }
}

/// Formats verdicts as text.
enum HealthText {
    static func cell(_ health: JSONValue?) -> Table.Cell {
        let verdict = health["verdict"].plain
        return .init(verdict, verdict.flatMap(self.colour))
    }

    /// "bad: media_behind_clock, b_frames"
    static func summary(_ health: JSONValue?) -> String? {
        guard let verdict = health["verdict"].plain else { return nil }
        let codes = health["reasons"].list.compactMap { $0["code"].plain }
        return codes.isEmpty ? verdict : "\(verdict): \(codes.joined(separator: ", "))"
    }

    /// Paragraphs for a person: the verdict, then each reason with advice. The API's messages already contain both as sentences.
    static func explanation(of name: String, _ stream: JSONValue?) -> [String] {
        let health = stream["health"]
        guard let verdict = health["verdict"].plain else {
            let state = stream["state"].plain ?? "unknown"
            return [
                state == "live"
                    ? "\(name) is not judged: nothing has arrived yet, or the server makes it itself."
                    : "\(name) is not judged: nobody pushes it now (\(DisplayText.escaped(state)))."
            ]
        }
        let reasons = health["reasons"].list
        let ills = reasons.filter { $0["severity"].plain != "good" }
        let notes = reasons.filter { $0["severity"].plain == "good" }
        var lines = [self.opening(name, verdict, count: ills.count)]
        for (index, reason) in ills.enumerated() {
            lines += ["", "\(index + 1). \(self.text(reason, withSeverity: ills.count > 1))"]
        }
        if !notes.isEmpty { lines += ["", ills.isEmpty ? "Worth knowing:" : "Also worth knowing:"] }
        lines += notes.map { "- \(self.text($0, withSeverity: false))" }
        return lines
    }

    private static func opening(_ name: String, _ verdict: String, count: Int) -> String {
        let painted = self.painted(verdict)
        switch verdict {
        case "good": return "\(name) is \(painted): it arrives as it should."
        default: return "\(name) is \(painted), for \(count == 1 ? "one reason" : "\(count) reasons"):"
        }
    }

    /// "Only 0.66 s of media … (media_behind_clock)"
    private static func text(_ reason: JSONValue?, withSeverity: Bool) -> String {
        let message = DisplayText.escaped(reason["message"].plain ?? "")
        let code = DisplayText.escaped(reason["code"].plain ?? "-")
        let severity = withSeverity ? reason["severity"].plain.map { ", \(DisplayText.escaped($0))" } ?? "" : ""
        return "\(message) (\(code)\(severity))"
    }

    private static func painted(_ verdict: String) -> String {
        let text = DisplayText.escaped(verdict)
        guard Console.usesColour, let colour = self.colour(verdict) else { return text }
        return "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
    }

    private static func colour(_ verdict: String) -> Table.Colour? {
        switch verdict {
        case "good": .green
        case "degraded": .yellow
        case "bad": .red
        default: nil
        }
    }
}
