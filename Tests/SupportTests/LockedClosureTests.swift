import Foundation
import Testing

/// A `Mutex` of a closure, or of a tuple that has one, wraps that closure once more each time that it is read: calls get slower, and after some
/// hundred thousand reads the stack overflows. A struct around the closure, or an array, keeps it as it is.
@Suite struct LockedClosureTests {
    private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Sources")

    /// Whether a function's arrow stands in the angle brackets of a `Mutex`, and in no array or dictionary there.
    static func isLockedClosure(_ line: some StringProtocol) -> Bool {
        guard let start = line.range(of: "Mutex<")?.upperBound else { return false }
        var (angles, squares) = (1, 0)
        var last: Character = " "
        for character in line[start...] {
            defer { last = character }
            switch character {
            case "[": squares += 1
            case "]": squares -= 1
            case "<": angles += 1
            case ">" where last == "-": if squares == 0 { return true }
            case ">":
                angles -= 1
                if angles == 0 { return false }
            default: break
            }
        }
        return false
    }

    @Test(arguments: [
        ("let a = Mutex<@Sendable ([Int]) -> Void>({ _ in })", true), ("let a = Mutex<(@Sendable (Int) -> Void)?>(nil)", true),
        ("let a = Mutex<(body: (@Sendable () -> Void)?, isDue: Bool)>((nil, false))", true),
        ("let a = Mutex<() async throws -> Int>", true), ("let a = Mutex<[@Sendable () -> Void]>([])", false),
        ("let a = Mutex<(any Channel)?>(nil)", false), ("let a = Mutex<[String: Int]>([:]); func b() -> Int", false),
    ])
    func theRule(_ line: String, _ isOne: Bool) { #expect(Self.isLockedClosure(line) == isOne, "\(line)") }

    @Test func noClosureIsLockedAlone() throws {
        let files = try #require(FileManager.default.enumerator(at: Self.sources, includingPropertiesForKeys: nil))
        var read = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            read += 1
            for (number, line) in try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
                .enumerated()
            where line.contains("Mutex<") {
                #expect(!Self.isLockedClosure(line), "\(file.lastPathComponent):\(number + 1): \(line)")
            }
        }
        #expect(read > 500, "\(read) files")
    }
}
