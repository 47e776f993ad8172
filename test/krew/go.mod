module github.com/noderes/kubectl-noderes/test/krew

go 1.26.0
