import Foundation
import Mutation

/// The clone whose tests are checked.
struct SourceTree {
    let root: URL

    /// Returns every mutant of the pure floors in files whose path matches the expression.
    func mutants(in files: Regex<AnyRegexOutput>) throws -> [Mutant] {
        try self.paths(of: "Sources").filter { $0.hasSuffix(".swift") && $0.contains(files) }.flatMap { path in
            let source = try self.text(path)
            return Floor.of(file: path, source: source) == nil ? [] : Mutation.mutants(of: source, file: path)
        }
    }

    func text(_ path: String) throws -> String { try String(contentsOf: self.root.appending(path: path), encoding: .utf8) }

    /// Returns the entries of explained.txt. Throws if one names a line or a change that no longer exists.
    func explained() throws -> [Explained] {
        let entries = try Explained.parse(self.text("Tests/Mutants/explained.txt"))
        var candidates: [String: [Mutant]] = [:]
        for entry in entries {
            if candidates[entry.file] == nil {
                guard let source = try? self.text(entry.file) else {
                    throw Failure("explained.txt names \(entry.file), which is not there")
                }
                candidates[entry.file] = Mutation.mutants(of: source, file: entry.file)
            }
            guard candidates[entry.file]?.contains(where: entry.explains) == true else {
                throw Failure(
                    "explained.txt is out of date: \(entry.file) has no such line, or no such change of it\n  before: \(entry.before)\n  after: \(entry.after)"
                )
            }
        }
        return entries
    }

    /// Updates the copy to the clone with the plan's mutants. Unchanged files keep their time, so that they are not rebuilt.
    func copy(to work: WorkFolder, with plan: Plan) throws {
        var wanted = Set(["Package.swift"])
        // Some tests read what documents say.
        let read = try ["Package.resolved", "SECURITY.md"] + self.paths(of: "docs")
        for path in try read + self.paths(of: "Sources") + self.paths(of: "Tests") where !path.hasPrefix("Tests/Mutants/") {
            if FileManager.default.fileExists(atPath: self.root.appending(path: path).path) { wanted.insert(path) }
        }
        for path in wanted {
            // Copies a link's target instead of the link.
            var content = try Data(contentsOf: self.root.appending(path: path))
            let mutants = plan.compiled.filter { $0.file == path }
            if !mutants.isEmpty { content = Data(try self.rewrite(path, with: mutants).text.utf8) }
            if path == "Package.swift" { content = try Self.withoutErrorsFromWarnings(content) }
            try Self.put(content, at: work.copy.appending(path: path))
        }
        for floor in Floor.all {
            let path = "\(floor.folder)/ActiveMutant.swift"
            wanted.insert(path)
            try Self.put(Data(Mutation.switchFile.utf8), at: work.copy.appending(path: path))
        }
        for path in try SourceTree(root: work.copy).paths(of: "Sources") + SourceTree(root: work.copy).paths(of: "Tests")
        where !wanted.contains(path) {
            try FileManager.default.removeItem(at: work.copy.appending(path: path))
        }
    }

    func rewrite(_ path: String, with mutants: [Mutant]) throws -> Rewritten {
        let source = try self.text(path)
        let candidates = Mutation.mutants(of: source, file: path)
        guard mutants.allSatisfy({ mutant in candidates.contains { $0.isSame(as: mutant) } }) else {
            throw Failure("\(path) is not what the mutants were drawn from; start a new run")
        }
        return Mutation.rewrite(source, with: mutants)
    }

    private static func put(_ content: Data, at url: URL) throws {
        if let old = try? Data(contentsOf: url), old == content { return }
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try content.write(to: url)
    }

    /// Removes the setting that makes warnings errors, because a mutant may leave unreachable code.
    private static func withoutErrorsFromWarnings(_ manifest: Data) throws -> Data {
        let text = String(decoding: manifest, as: UTF8.self)
        let changed = text.replacing(".treatAllWarnings(as: .error),", with: "")
        guard changed != text else { throw Failure("Package.swift does not hold .treatAllWarnings(as: .error),") }
        return Data(changed.utf8)
    }

    /// Returns the paths from the root of all files below a folder, including links.
    private func paths(of folder: String) throws -> [String] {
        let base = self.root.appending(path: folder)
        guard FileManager.default.fileExists(atPath: base.path) else { return [] }
        return try FileManager.default.subpathsOfDirectory(atPath: base.path).filter { path in
            var isFolder: ObjCBool = false
            return FileManager.default.fileExists(atPath: base.appending(path: path).path, isDirectory: &isFolder) && !isFolder.boolValue
                && !path.contains("/.build") && !path.hasPrefix(".build")
        }.map { "\(folder)/\($0)" }.sorted()
    }
}
