import CommandSupport
import Support

/// Collects results and prints each as soon as it is known. Used by one task.
struct DoctorReport {
    enum Form { case lines, names, json }

    let form: Form
    private(set) var results: [DoctorResult] = []

    init(form: Form) { self.form = form }

    func count(_ status: DoctorResult.Status) -> Int { self.results.count { $0.status == status } }

    /// Shows the running check on a terminal; the next line overwrites it.
    func progress(_ what: String) {
        guard Console.errorsAreOnTerminal else { return }
        let width = Console.errorWidth ?? 80
        Console.hint("\r\u{1B}[K" + DisplayText.truncated("… \(what)", to: max(1, width - 1)))
    }

    private func clearProgress() { if Console.errorsAreOnTerminal { Console.hint("\r\u{1B}[K") } }

    mutating func add(_ more: [DoctorResult]) throws {
        self.results += more
        self.clearProgress()
        for result in more {
            switch self.form {
            case .json: break
            case .names: if result.status == .fail { try Console.print(DisplayText.escaped(result.name)) }
            case .lines: for line in Self.lines(result, colour: Console.usesColour) { try Console.print(line) }
            }
        }
    }

    /// The result's line, and its advice below.
    static func lines(_ result: DoctorResult, colour: Bool) -> [String] {
        let (word, code) =
            switch result.status {
            case .pass: ("pass", "32")
            case .warn: ("WARN", "33")
            case .fail: ("FAIL", "31")
            case .skip: ("skip", "2")
            }
        let mark = colour ? "\u{1B}[\(code)m\(word)\u{1B}[0m" : word
        let name = DisplayText.escaped(result.name)
        let space = String(repeating: " ", count: max(1, Self.nameWidth - DisplayText.width(name)))
        return ["\(mark)  \(name)\(space)\(DisplayText.escaped(result.measured))"]
            + (result.advice.map { ["      → \(DisplayText.escaped($0))"] } ?? [])
    }

    private static let nameWidth = 24

    /// Prints the end: the sum in words, or the whole as JSON.
    func finish(subject: String, seconds: Double) throws {
        self.clearProgress()
        switch self.form {
        case .names: break
        case .json: try Console.print(self.json(subject: subject, seconds: seconds).indented())
        case .lines:
            let parts = [(DoctorResult.Status.fail, "failed"), (.warn, "to look at"), (.pass, "passed"), (.skip, "left out")]
            let words = parts.compactMap { status, word in self.count(status) > 0 || status == .fail ? "\(self.count(status)) \(word)" : nil
            }
            try Console.print("\n\(words.joined(separator: ", ")); \(HumanUnits.decimal(seconds, digits: 1) ?? "?") s, \(subject)")
        }
    }

    func json(subject: String, seconds: Double) -> JSONValue {
        [
            "ok": .bool(self.count(.fail) == 0), "subject": .string(subject), "seconds": .number((seconds * 10).rounded() / 10),
            "passed": .integer(Int64(self.count(.pass))), "warned": .integer(Int64(self.count(.warn))),
            "failed": .integer(Int64(self.count(.fail))), "skipped": .integer(Int64(self.count(.skip))),
            "checks": .array(self.results.map(\.json)),
        ]
    }
}
