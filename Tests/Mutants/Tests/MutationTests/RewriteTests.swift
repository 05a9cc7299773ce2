import Foundation
import Mutation
import Testing

@Suite struct RewriteTests {
    private let source = """
        func count(_ values: [Int], below limit: Int) -> Int {
            guard !values.isEmpty, limit > 0 else { return -1 }
            var count = 0
            for value in values {
                if value == 13 { continue }
                if value < limit && value != 4 { count += 1 } else { count += 100 }
            }
            return count > 5 ? count - 5 : count
        }
        """

    private func drawn(_ seed: UInt64, count: Int = 100) -> [Mutant] {
        Mutation.draw(count, from: Mutation.mutants(of: self.source, file: "A.swift"), seed: seed)
    }

    @Test func theDrawIsTheSameForTheSameSeed() {
        #expect(self.drawn(7) == self.drawn(7))
        #expect(self.drawn(7) != self.drawn(8))
        #expect(self.drawn(7, count: 3).map(\.id) == [1, 2, 3])
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func noMutantIsInsideAnother(seed: UInt64) {
        let drawn = self.drawn(seed)
        for (index, mutant) in drawn.enumerated() {
            #expect(!drawn.dropFirst(index + 1).contains { $0.range.overlaps(mutant.range) })
        }
    }

    @Test func theRestOfTheTextStays() {
        let source = "let a = b < c // why\nlet d = 1\n"
        let mutants = Mutation.mutants(of: source, file: "A.swift").filter { $0.kind == .comparison }
        let rewritten = Mutation.rewrite(source, with: Mutation.draw(1, from: mutants, seed: 1))
        #expect(rewritten.text == "let a = (mutant(1) ? ((b) <= (c)) : ((b) < (c))) // why\nlet d = 1\n")
        #expect(Mutation.rewrite(source, with: []).text == source)
    }

    @Test func anErrorIsPutDownToTheMutantInItsLine() {
        // The comparison is written twice, so the text after it moves two lines down.
        let source = "let a =\n    b.filter {\n        $0\n    } < c\nlet d = 1\nlet e = f\n"
        let mutants = Mutation.mutants(of: source, file: "A.swift").filter { $0.kind == .comparison || $0.after == "let d = 2" }
        let drawn = Mutation.draw(9, from: mutants, seed: 1)
        #expect(drawn.count == 2)
        let rewritten = Mutation.rewrite(source, with: drawn)
        let ids = Dictionary(uniqueKeysWithValues: drawn.map { ($0.kind, $0.id) })
        #expect(rewritten.lines[ids[.comparison] ?? 0] == 2...6)
        #expect(rewritten.suspects(line: 1) == [ids[.comparison]])
        #expect(rewritten.suspects(line: 5) == [ids[.comparison]])
        #expect(rewritten.suspects(line: 7) == [ids[.literal]])
        // This line has no mutant, so the nearest one is suspected.
        #expect(rewritten.suspects(line: 8) == [ids[.literal]])
    }

    @Test func errorsAreFoundInABuildLog() {
        let log = """
            [1/2] Compiling A
            /tmp/a b/Sources/A/B.swift:12:5: error: cannot find 'c' in scope
            10 | let b = c
            /tmp/a b/Sources/A/B.swift:14:5: warning: never used
            error: fatalError
            """
        #expect(BuildLog.errors(in: log) == [.init(path: "/tmp/a b/Sources/A/B.swift", line: 12)])
    }

    /// Compiles the rewritten source and switches each mutant on. Each must change the output.
    @Test func eachMutantCanBeSwitchedOn() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "mutants-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let drawn = self.drawn(3)
        #expect(drawn.count >= 8)
        let text = Mutation.rewrite(self.source, with: drawn).text
        try (Mutation.switchFile).write(to: folder.appending(path: "Switch.swift"), atomically: true, encoding: .utf8)
        let calls = [
            "[], below: 3", "[1, 2, 3, 4, 4, 13, 20, 21], below: 20", "[1, 1, 1, 1, 1, 1], below: 2", "[1, 1, 1, 1, 1], below: 2",
            "[0], below: 1", "[20], below: 0", "[13], below: 20",
        ].map { "count(\($0))" }
        let main = "\nprint(\(calls.joined(separator: ", ")))\n"
        try (text + main).write(to: folder.appending(path: "main.swift"), atomically: true, encoding: .utf8)
        let program = folder.appending(path: "program")
        _ = try Self.output(
            "/usr/bin/env",
            ["swiftc", "-o", program.path, folder.appending(path: "main.swift").path, folder.appending(path: "Switch.swift").path])
        let original = try Self.output(program.path, [])
        #expect(original == "-1 398 1 5 1 -1 0\n")
        for mutant in drawn {
            #expect(try Self.output(program.path, [], mutant: mutant.id) != original, "\(mutant.after)")
        }
    }

    private static func output(_ path: String, _ arguments: [String], mutant: Int = 0) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["EARSHOT_MUTANT": "\(mutant)", "SWIFT_BACKTRACE": "enable=no"]) {
            $1
        }
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }
}
