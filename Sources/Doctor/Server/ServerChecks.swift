import CommandSupport
import LibC
import NIOCore
import NIOHTTP1
import Support

/// Checks whether the server answers, and reads the server's own checks.
struct ServerChecks: Sendable {
    let api: APIClient
    let http: DoctorHTTP

    private var origin: String { "\(self.api.server)" }

    /// Readiness and clock. Throws a ``CommandFailure`` with status `unreachable` when no server answers.
    func health() async throws -> [DoctorResult] {
        let answer: DoctorHTTP.Answer
        do {
            answer = try await self.http.get("\(self.origin)/healthz", within: 5)
        } catch {
            throw CommandFailure(.unreachable, "cannot reach \(self.api.server): \(DoctorHTTP.words(error))")
        }
        guard answer.status == 200 else {
            throw CommandFailure(.unreachable, "\(self.api.server) answers \(answer.status) to /healthz, which an Earshot server does not")
        }
        var results: [DoctorResult] = [.pass("health", "\(self.api.server) answers")]
        if let ready = try? await self.http.get("\(self.origin)/readyz", within: 5) {
            let words = String(buffer: ready.body).split(separator: "\n").first.map { DisplayText.escaped(String($0)) } ?? ""
            results.append(
                ready.status == 200
                    ? .pass("readiness", "ready")
                    : .fail(
                        "readiness", "HTTP \(ready.status) \(words)",
                        "see what it says, and the server's log; load balancers send nobody there"))
        }
        results.append(
            ClockCheck.judge(here: Int64(time(nil)), server: answer.headers.first(name: "Date").flatMap(HTTPDate.seconds)))
        return results
    }

    /// Runs the server's own comparison of its counters with the things they count.
    func counters() async -> DoctorResult {
        let name = "counters"
        do {
            let check = try await self.api.get(["selfcheck"])
            let wrong = check["list"].list.filter { $0["ok"].bool != true }
            guard wrong.isEmpty else {
                let names = wrong.compactMap { $0["name"].string }.joined(separator: ", ")
                return .fail(name, "wrong: \(names)", "please report it, with earshot selfcheck --json")
            }
            return .pass(name, "\(check["list"].list.count) agree with what they count")
        } catch {
            return .skip(name, MediaChecks.words(error))
        }
    }
}

/// Dates of HTTP, in the only form that servers send (RFC 9110 §5.6.7).
enum HTTPDate {
    /// Seconds since 1970 of "Sun, 06 Nov 1994 08:49:37 GMT".
    static func seconds(_ text: String) -> Int64? {
        let words = text.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", words[1].count == 2, words[3].count == 4, words[4].count == 8,
            let month = Instant.months.firstIndex(of: String(words[2]))
        else { return nil }
        let number = month < 9 ? "0\(month + 1)" : "\(month + 1)"
        return Moment(argument: "\(words[3])-\(number)-\(words[1])T\(words[4])Z").map { $0.milliseconds / 1_000 }
    }
}
