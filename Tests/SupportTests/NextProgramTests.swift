import Foundation
import Testing

@testable import Support

/// Which program takes a process over.
@Suite struct NextProgramTests {
    @Test func itsPath() throws {
        #expect(try NextProgram(arguments: ["/bin/sh", "-c"], file: nil).path == "/bin/sh")
        // Found by PATH: the kernel's name for the file, also once a newer one has its place.
        #expect(try NextProgram(arguments: ["sh"], file: "/bin/sh").path == "/bin/sh")
        #expect(try NextProgram(arguments: ["sh"], file: "/bin/sh (deleted)").path == "/bin/sh")
        let running = try #require(NextProgram.pathAtStart)
        #expect(access(running, X_OK) == 0, "\(running)")
    }

    @Test(arguments: [
        (["/nowhere/earshot"], "/nowhere/earshot"), (["/etc/passwd"], "/etc/passwd"), (["/tmp"], "/tmp"),
        (["earshot"], "the path of this one"), ([], "the path of this one"),
    ])
    func thatIsNone(_ arguments: [String], _ named: String) {
        let error = #expect(throws: ValueProblem.self) { try NextProgram(arguments: arguments, file: nil) }
        #expect("\(error.map { "\($0)" } ?? "")".contains(named))
    }

    /// The kernel's words for a program that is none, and nothing else happens.
    @Test func aFileThatIsNoProgram() throws {
        let path = "/tmp/earshot-next-\(getpid())"
        let descriptor = open(path, O_WRONLY | O_CREAT, 0o755)
        close(descriptor)
        defer { unlink(path) }
        #expect(try NextProgram(arguments: [path], file: nil).path == path)
    }
}
