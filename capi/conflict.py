import re,os,sys
g={}
for p in ['edits1.py','edits2.py','edits3.py']: exec(open(p).read(),g)
E=g['E']; root='/tmp/w/txt'
files=[]
for d in ['Tests','docs','README.md','CHANGELOG.md','CONTRIBUTING.md','deploy','scripts','Benchmarks','Sources','Makefile','.ci']:
    p=os.path.join(root,d)
    if os.path.isfile(p): files.append(p)
    for b,_,fs in os.walk(p):
        if '/Corpus' in b or '/.build' in b or 'Sources/ControlAPI' in b or 'node_modules' in b: continue
        for x in fs:
            if x.endswith(('.swift','.py','.md','.sh','.yaml','.yml','.txt','.html','.json')) or x=='Makefile': files.append(os.path.join(b,x))
def frags(t,f):
    # string literals split at interpolations
    out=[]
    for k,l in enumerate(t.split('\n'),1):
        if f.endswith('.md') or f.endswith('.txt'):
            out+= [(k,l,l)]; continue
        for m in re.finditer(r'"((?:[^"\\]|\\.)*)"|`([^`]*)`|\'((?:[^\'\\]|\\.)*)\'',l):
            s=m.group(1) or m.group(2) or m.group(3) or ''
            for part in re.split(r'\\+#?\([^)]*\)|\{[^}]*\}',s):
                if part.strip(): out.append((k,l,part))
    return out
F=[(f,frags(open(f,errors='replace').read(),f)) for f in files]
def norm(s): return s.replace('\\"','"').replace('\\\\','\\')
olds=set()
for f,es in E.items():
    for o,n in es:
        ol=[x for x in re.findall(r'"((?:[^"\\]|\\.)*)"',re.sub(r'"""','',o))]
        for s in ol:
            if s in n: continue
            for part in re.split(r'\\\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)',s):
                part=norm(part)
                if len(part.strip())>=6: olds.add((f,part))
olds=sorted(olds)
seen=set()
for f,o in olds:
    ow=o.split()
    for tf,fr in F:
        istest='/Tests/' in tf
        for k,l,p in fr:
            ps=norm(p).strip(' .,;:')
            hit=None
            if tf.endswith(('.md','.txt')):
                grams=[' '.join(ow[i:i+4]).strip('.,;:') for i in range(max(0,len(ow)-3))]
                if any(gm in p for gm in grams): hit='4gram'
            else:
                if len(ps)>=5 and ' ' in ps and ps in o: hit='sub'
                else:
                    grams=[' '.join(ow[i:i+4]).strip('.,;:') for i in range(max(0,len(ow)-3))]
                    if any(gm in p for gm in grams): hit='4gram'
            if hit and (f,tf,k,o) not in seen:
                seen.add((f,tf,k,o))
                if not istest and hit=='sub' and '/Sources/' in tf and len(ps.split())<3: continue
                print(hit,'|',f,'|',o[:80],'|',tf.replace(root+'/',''),k,'|',l.strip()[:200])
