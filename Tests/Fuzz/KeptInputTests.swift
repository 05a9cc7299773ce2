import Foundation
import Synchronization
import Testing

extension FuzzTarget: CustomTestStringConvertible {
    var testDescription: String { self.name }
}

/// The inputs that fuzzing has kept, one after the other, as ordinary tests. New ones, and the address sanitizer's eyes, are scripts/fuzz.sh's.
@Suite struct KeptInputTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    /// The files of a target, in both folders. The newest targets may have no crashers.
    private static func files(of target: String) throws -> [URL] {
        try ["Corpus", "Crashers"].flatMap { kind in
            let folder = Self.folder.appending(path: "\(kind)/\(target)")
            guard FileManager.default.fileExists(atPath: folder.path) else { return [URL]() }
            return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).sorted { $0.path < $1.path }
        }
    }

    @Test(arguments: FuzzTarget.all) func eachKeepsItsProperties(_ target: FuzzTarget) throws {
        let files = try Self.files(of: target.name)
        #expect(!files.isEmpty, "there is no input in Corpus/\(target.name)")
        for file in files {
            let input = FuzzInput(Array(try Data(contentsOf: file)))
            let location = "\(file.deletingLastPathComponent().lastPathComponent)/\(file.lastPathComponent)"
            BrokenProperty.$note.withValue({ Issue.record("\(location): \($0)") }, operation: { target.run(input) })
        }
    }

    /// A folder whose target is gone, or has another name, would be read by nobody.
    @Test(arguments: ["Corpus", "Crashers"]) func everyFolderHasItsTarget(_ kind: String) throws {
        let names = Set(FuzzTarget.all.map(\.name))
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.folder.appending(path: kind).path)
        #expect(folders.filter { !names.contains($0) && !$0.hasPrefix(".") } == [])
    }

    /// The note takes a broken property in; without it the process would end here.
    @Test func aBrokenPropertyIsNoted() {
        let target = FuzzTarget("broken", maxLength: 1) { input in expect(input.isEmpty, "there is input") }
        let notes = Mutex<[String]>([])
        BrokenProperty.$note.withValue({ words in notes.withLock { $0.append(words) } }, operation: { target.run(FuzzInput([1])) })
        #expect(notes.withLock { $0 } == ["there is input"])
    }
}
